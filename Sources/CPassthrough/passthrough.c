#include "CPassthrough.h"
