import ArgumentParser

HTTPFS.main()
