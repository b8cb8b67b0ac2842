package lib.names

long(name) if count(name) > 8

unused := true
