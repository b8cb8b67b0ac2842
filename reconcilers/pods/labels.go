package pods

import "maps"

// WithLabels returns the union of two sets of labels, in which the second wins.
func WithLabels(user, own map[string]string) map[string]string {
	labels := make(map[string]string, len(user)+len(own))
	maps.Copy(labels, user)
	maps.Copy(labels, own)
	return labels
}
