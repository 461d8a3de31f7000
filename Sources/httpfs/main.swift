print("httpfs")
