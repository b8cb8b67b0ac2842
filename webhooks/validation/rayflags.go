package validation

import (
	"strings"
)

// flagValue is what a flag of `ray start` takes.
type flagValue int

const (
	// anyText is a value that is not judged.
	anyText flagValue = iota
	// isSet takes no value: the flag is there or not.
	isSet
	yesOrNo
	wholeNumber
	decimalNumber
	portNumber
	jsonText
	// amounts is a JSON object of numbers, by the names of resources.
	amounts
)

// rayFlags are the flags of `ray start`, those of older versions of Ray
// included (python/ray/scripts/scripts.py), by what they take.
var rayFlags = map[string]flagValue{
	"address": anyText, "autoscaling-config": anyText, "cgroup-path": anyText, "dashboard-host": anyText,
	"labels": anyText, "labels-file": anyText, "log-color": anyText, "log-style": anyText,
	"node-ip-address": anyText, "node-name": anyText, "object-spilling-directory": anyText,
	"plasma-directory": anyText, "plasma-store-socket-name": anyText, "raylet-socket-name": anyText,
	"redis-password": anyText, "redis-shard-ports": anyText, "redis-username": anyText, "storage": anyText,
	"temp-dir": anyText, "tracing-startup-hook": anyText, "worker-port-list": anyText,

	"block": isSet, "disable-usage-stats": isSet, "enable-object-reconstruction": isSet,
	"enable-resource-isolation": isSet, "head": isSet, "no-monitor": isSet, "no-redirect-output": isSet,
	"ray-debugger-external": isSet, "verbose": isSet,

	"include-dashboard": yesOrNo, "include-log-monitor": yesOrNo,

	"memory": wholeNumber, "num-cpus": wholeNumber, "num-gpus": wholeNumber, "object-store-memory": wholeNumber,
	"redis-max-memory": wholeNumber, "system-reserved-memory": wholeNumber,
	"system-reserved-cpu": decimalNumber,

	"dashboard-agent-grpc-port": portNumber, "dashboard-agent-listen-port": portNumber,
	"dashboard-grpc-port": portNumber, "dashboard-port": portNumber, "gcs-server-port": portNumber,
	"max-worker-port": portNumber, "metrics-export-port": portNumber, "min-worker-port": portNumber,
	"node-manager-port": portNumber, "object-manager-port": portNumber, "port": portNumber,
	"ray-client-server-port": portNumber, "runtime-env-agent-port": portNumber,

	"resources": amounts, "system-config": jsonText,
}

// headFlags are those that `ray start` refuses where it starts no head.
var headFlags = []string{"include-dashboard", "port", "redis-shard-ports"}

// isFlagName says whether a word can be the name of a flag: letters, digits and
// hyphens, beginning with a letter. Underscores are the misspelling of hyphens.
func isFlagName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}

// shellWord reads the first word of what stands on a command line, as a shell
// does: without its quotes. ok is false where a quote is not closed. What a shell
// would put something else for must not be in it.
func shellWord(text string) (word string, ok bool) {
	var b strings.Builder
	text = strings.TrimLeft(text, " \t\n")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return b.String(), false
			}
			b.WriteString(text[i+1 : i+1+end])
			i += end + 1
		case c == '"':
			end, closed := inDoubleQuotes(&b, text[i+1:])
			if !closed {
				return b.String(), false
			}
			i += end + 1
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case strings.IndexByte(" \t\n;|&<>()", c) >= 0:
			return b.String(), true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// inDoubleQuotes adds what stands in double quotes, and returns where the closing
// one is.
func inDoubleQuotes(b *strings.Builder, text string) (end int, closed bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return i, true
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\\\"$`", text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(text[i])
		}
	}
	return 0, false
}
