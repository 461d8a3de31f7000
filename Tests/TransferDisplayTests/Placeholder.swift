// Filled by the display.
