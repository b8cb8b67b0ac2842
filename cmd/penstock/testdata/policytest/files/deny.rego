package main

import data.lib.names

deny contains msg if {
	input.kind == "Pod"
	names.long(input.metadata.name)
	msg := "has a long name"
}
