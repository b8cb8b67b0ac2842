// Package pods is what all kinds that make pods have in common: how far a pod
// is, what it asks for, and how variables, volumes, labels and topology get into
// one.
//
// It is part of step 9 of the flow and pure, as the kinds are.
package pods
