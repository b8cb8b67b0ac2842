package secrets

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var (
	// secretName ends as names of secrets do. A secretName or a tokenFile only
	// says where one is.
	secretName = regexp.MustCompile(`(?i)(?:passw(?:or)?ds?|passphrase|secret|token|credentials?|bearer|authorization|cookie|` +
		`(?:api|access|account|private|secret|encryption|signing|master|auth|ssh)[-_.]?key|` +
		`(?:^|[-_.])(?:pass|pwd)|(?-i:[a-z](?:Pass|Pwd)))(?:[-_.]?[0-9]{1,3})?$`)
	// modelToken is what models read and write texts in.
	modelToken = regexp.MustCompile(`(?i)(?:^|[-_.])(?:max|min|num|per|pad|eos|bos|unk|cls|sep|mask|stop)[-_]?token$`)
	// namesPassword is a name whose value may be any word.
	namesPassword = regexp.MustCompile(`(?i)(?:passw(?:or)?d|passphrase)$`)
)

// Named reports whether the text of a member or a variable of this name is
// a secret.
func Named(name string) bool {
	return name == corev1.LastAppliedConfigAnnotation || secretName.MatchString(name) && !modelToken.MatchString(name)
}

// After finds secrets in an argument for what the one before it is: where each
// begins and ends, in bytes.
func After(before, argument string) [][2]int {
	const around = "\\\"'` \t\r\n=:"
	before = strings.Trim(before, around)
	name, _, given := strings.Cut(argument, "=")
	switch {
	case argument == "":
	case aFlag.MatchString(before) && Named(before):
		return [][2]int{{0, len(argument)}}
	case given && aFlag.MatchString(name) && Named(name) && len(name)+1 < len(argument):
		return [][2]int{{len(name) + 1, len(argument)}} // spaces and all
	case userFlag.MatchString(before):
		if from, holds := passwordOf(argument); holds {
			return [][2]int{{from, len(argument)}}
		}
	}
	return nil
}
