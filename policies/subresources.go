package policies

import (
	"slices"
	"strings"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// coreSubresources are the operations that the API server asks admission about
// for subresources of the core group; of none where they are only read.
var coreSubresources = map[string][]v1.PolicyOperation{
	"attach":              {v1.OperationConnect},
	"binding":             {v1.OperationCreate},
	"ephemeralcontainers": {v1.OperationUpdate},
	"eviction":            {v1.OperationCreate},
	"exec":                {v1.OperationConnect},
	"finalize":            {v1.OperationUpdate},
	"log":                 {},
	"portforward":         {v1.OperationConnect},
	"proxy":               {v1.OperationConnect},
	"resize":              {v1.OperationUpdate},
	"token":               {v1.OperationCreate},
}

// OperationsOn lists the operations that the API server asks about for a
// subresource of kinds of a group, the empty string for the objects themselves.
// known is false of those that only their own API server knows.
func OperationsOn(group, subresource string) (comes []v1.PolicyOperation, known bool) {
	switch {
	case subresource == "":
		return []v1.PolicyOperation{v1.OperationCreate, v1.OperationUpdate, v1.OperationDelete}, true
	case ownStatus(group, subresource):
		return nil, true
	case subresource == "status", subresource == "scale":
		return []v1.PolicyOperation{v1.OperationUpdate}, true
	}
	if group != "" && group != wildcard {
		return nil, false
	}
	comes, known = coreSubresources[subresource]
	return comes, known
}

// ownStatus tells of the status of Penstock's kinds, which Penstock writes.
func ownStatus(group, subresource string) bool {
	return group == v1.GroupName && subresource == "status"
}

// AskedOn reports whether the API server can ask a policy about a subresource of
// kinds of a group, by the operations that it judges.
func AskedOn(match *v1.PolicyMatch, group, subresource string) bool {
	comes, known := OperationsOn(group, subresource)
	return !known || slices.ContainsFunc(OperationsOf(match), func(operation v1.PolicyOperation) bool { return slices.Contains(comes, operation) })
}

// UnaskedOn says why the API server never asks a policy about a subresource.
func UnaskedOn(match *v1.PolicyMatch, group, subresource string) string {
	comes, _ := OperationsOn(group, subresource)
	asked := "the policy is asked about " + inWords(OperationsOf(match)) + " alone"
	if ownStatus(group, subresource) {
		return "Penstock writes it, and what a job has come to is never held up"
	}
	if len(comes) == 0 {
		return "it is only read, and the API server asks about no reads"
	}
	return "it comes with " + inWords(comes) + ", and " + asked
}

// inWords lists operations.
func inWords(operations []v1.PolicyOperation) string {
	var text strings.Builder
	for i, operation := range operations {
		switch {
		case i > 0 && i == len(operations)-1:
			text.WriteString(" and ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(operation))
	}
	return text.String()
}

// Connects reports whether the policy names a subresource that can be connected
// to, as exec is.
func Connects(match *v1.PolicyMatch) bool {
	for _, resources := range match.Resources {
		for _, name := range resources.Subresources {
			if comes, known := OperationsOn(resources.Group, name); !known || slices.Contains(comes, v1.OperationConnect) {
				return true
			}
		}
	}
	return false
}
