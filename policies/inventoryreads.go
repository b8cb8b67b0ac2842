package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// inventoryRoot follows the objects of data.inventory.
var inventoryRoot = flowRoot{
	length: 2,
	leads:  readsInventory,
	isKind: func(path inventoryPath) bool {
		return len(path) == path.kindAt()+1 && path[0] != anyMember
	},
}

// inventoryReadsOf finds what compiled modules read of data.inventory.
func inventoryReadsOf(modules []*ast.Module) []inventoryRead {
	var reads []inventoryRead
	for _, read := range readsBelow(inventoryRoot, modules) {
		reads = append(reads, read.path.read(read.whole, read.at))
	}
	return reads
}

// readsInventory reports whether a reference may lead to data.inventory.
func readsInventory(ref ast.Ref) bool {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return false
	}
	name, constant := memberName(ref, 1)
	return !constant || name == "inventory"
}
