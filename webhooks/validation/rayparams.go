package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/penstock-dev/penstock/api/v1"
)

// overwriteAnnotation says that the author's own command starts Ray.
const overwriteAnnotation = "ray.io/overwrite-container-cmd"

// paramJudge judges the flags by which the pods of a role start Ray.
type paramJudge struct {
	*findings
	role   *v1.RayRole
	params map[string]string
	path   *field.Path
}

// startFaults finds the flags with which `ray start` fails at once, whatever the
// version of Ray: the pods would crash for ever.
func startFaults(role *v1.RayRole, path *field.Path) field.ErrorList {
	j := &paramJudge{findings: &findings{}, role: role, path: path.Child("ray", "startParams")}
	if role.Ray == nil {
		return nil
	}
	j.params = role.Ray.StartParams
	for _, name := range slices.Sorted(maps.Keys(j.params)) {
		if j.name(name) {
			j.value(name, j.params[name])
		}
	}
	return j.errs
}

func (j *paramJudge) name(name string) bool {
	bare := strings.TrimLeft(name, "-")
	switch path := j.path.Key(name); {
	case isFlagName(name):
		return true
	case name == "":
		j.required(path, "a flag of ray start needs a name: write it, or remove the entry")
	case isFlagName(bare):
		j.invalid(path, name, fmt.Sprintf("is written with its dashes, which are put before it: write %s", bare))
	default:
		j.invalid(path, name, "cannot be a flag of ray start: write the name of one flag as the key, such as num-cpus, and what it takes as the value")
	}
	return false
}

func (j *paramJudge) value(name, value string) {
	path, head := j.path.Key(name), j.role.Name == v1.RoleHead
	switch {
	case !head && slices.Contains(headFlags, name):
		j.forbidden(path, "is for the head, and ray start refuses it on workers: remove it")
		return
	case name == "block" || strings.ContainsAny(value, "$`"):
		// Penstock sets the one, and a shell the other.
		return
	}
	word, closed := shellWord(value)
	if !closed {
		j.invalid(path, value, "opens a quote that it does not close, and the shell that starts Ray fails on that: close it")
		return
	}
	if takes := rayFlags[name]; strings.EqualFold(word, "false") && takes != isSet && takes != yesOrNo && name != "port" {
		return // The flag is left out.
	}
	j.takes(path, name, value, word)
}

// yesAndNo are the words that the command line takes as such.
var yesAndNo = []string{"true", "false", "1", "0", "t", "f", "yes", "no", "y", "n", "on", "off"}

// takes judges a value, and the word that it is to a shell, by what the flag
// takes.
func (j *paramJudge) takes(path *field.Path, name, value, word string) {
	switch rayFlags[name] {
	case isSet:
		j.isSet(path, name, word)
	case yesOrNo:
		if !slices.Contains(yesAndNo, strings.ToLower(word)) {
			j.invalid(path, value, "must be true or false: write one of the two")
		}
	case wholeNumber, portNumber:
		j.number(path, name, value, word)
	case decimalNumber:
		if _, err := strconv.ParseFloat(word, 64); err != nil {
			j.invalid(path, value, "must be a number: write it as 1.5")
		}
	case jsonText:
		if !json.Valid([]byte(word)) {
			j.invalid(path, value, notJSON(value))
		}
	case amounts:
		j.amounts(path, value, word)
	}
}

func (j *paramJudge) isSet(path *field.Path, name, word string) {
	switch {
	case strings.EqualFold(word, "true"):
		if name == "head" && j.role.Name != v1.RoleHead {
			j.forbidden(path, "would make each worker a head of its own, which joins no cluster: remove it")
		}
	case !strings.EqualFold(word, "false"):
		j.invalid(path, word, "takes no value: write true, or remove it")
	}
}

// wholeForm is how Python, which reads the flags, writes a whole number.
var wholeForm = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)

func (j *paramJudge) number(path *field.Path, name, value, word string) {
	if !wholeForm.MatchString(word) {
		j.invalid(path, value, wholeNumberFix(name, word))
		return
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(word, "_", ""), 10, 64)
	switch most := int64(65535); {
	case rayFlags[name] == wholeNumber && (err != nil || n < 0):
		j.invalid(path, value, "must be a whole number from 0, or else Ray fails: correct it, or leave it out")
	case name == "port" && err == nil && n == 0:
		j.invalid(path, value, "lets Ray choose a port, which workers cannot know: write one, such as 6379, or leave it out")
	case rayFlags[name] == portNumber && (err != nil || n < 0 || n > most):
		j.invalid(path, value, fmt.Sprintf("must be a port, a number up to %d: correct it, or leave it out", most))
	}
}

// wholeNumberFix says what to write in place of a value that is no whole number.
func wholeNumberFix(name, word string) string {
	quantity, err := resource.ParseQuantity(word)
	switch {
	case rayFlags[name] == portNumber:
		return "must be the number of a port: write it as digits, such as 6379, or leave it out"
	case err == nil && quantity.Sign() > 0 && strings.HasSuffix(name, "memory"):
		return fmt.Sprintf("must be a number of bytes, without a unit: write %d", quantity.Value())
	case strings.HasSuffix(name, "memory"):
		return "must be a number of bytes: write it as digits, or leave it out"
	default:
		return "must be a whole number: write it as digits, or leave it out"
	}
}

func notJSON(value string) string {
	if json.Valid([]byte(value)) {
		return fmt.Sprintf("is read by a shell first, which takes its quotes away, and then it is no JSON: write it in quotes, as '%s'", value)
	}
	return `is no JSON: write it as '{"accelerator": 4}', in quotes for the shell that reads it first`
}

// flagsOfResources are the names that Ray takes by flags alone.
var flagsOfResources = map[string]string{"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory", "object_store_memory": "object-store-memory"}

func (j *paramJudge) amounts(path *field.Path, value, word string) {
	var resources map[string]any
	if err := json.Unmarshal([]byte(word), &resources); err != nil || resources == nil {
		j.invalid(path, value, notJSON(value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if flag := flagsOfResources[name]; flag != "" {
			j.invalid(path, value, fmt.Sprintf("must not hold %s, which Ray takes by a flag of its own: write %s instead", name, flag))
			continue
		}
		switch amount := resources[name].(type) {
		case float64:
			if amount < 0 {
				j.invalid(path, value, fmt.Sprintf("must not hold a negative amount, as of %s: correct it, or leave it out", name))
			}
		case bool: // Ray counts it as 0 or 1.
		default:
			j.invalid(path, value, fmt.Sprintf("must hold numbers, and %s is none: write it as {%q: 1}", name, name))
		}
	}
}

// startsItself says whether the author's own command starts Ray, with the flags
// or without them.
func startsItself(cluster *v1.RayCluster, role *v1.RayRole) bool {
	if cluster.Annotations[overwriteAnnotation] == "true" || role.Template.Annotations[overwriteAnnotation] == "true" {
		return true
	}
	containers := role.Template.Spec.Containers
	return len(containers) > 0 && strings.Contains(commandOf(&containers[0]), "ray start")
}

func commandOf(container *corev1.Container) string {
	return strings.Join(slices.Concat(container.Command, container.Args), " ")
}

// adviseStart finds flags that may be wrong: those that no version of Ray known
// here has and that are near to one that has, those without effect, and, where
// the author's own command starts Ray, those that would make it fail.
func adviseStart(cluster *v1.RayCluster, role *v1.RayRole, path *field.Path) field.ErrorList {
	if role.Ray == nil {
		return nil
	}
	var advice field.ErrorList
	if startsItself(cluster, role) {
		advice = startFaults(role, path)
	}
	path = path.Child("ray", "startParams")
	for _, name := range slices.Sorted(maps.Keys(role.Ray.StartParams)) {
		word, _ := shellWord(role.Ray.StartParams[name])
		_, known := rayFlags[name]
		switch {
		case name == "block" && !strings.EqualFold(word, "true"):
			advice = append(advice, field.Forbidden(path.Key(name), "has no effect: Penstock sets block always, so that the container runs as long as Ray does; remove it"))
		case name == "head" && role.Name == v1.RoleHead && strings.EqualFold(word, "false"):
			advice = append(advice, field.Forbidden(path.Key(name), "has no effect: this is the head; remove it"))
		case known || !isFlagName(name):
		default:
			if near := Nearest(name, slices.Collect(maps.Keys(rayFlags))); near != "" {
				advice = append(advice, field.Forbidden(path.Key(name), fmt.Sprintf(
					"is no flag of ray start that is known here, and Ray fails on one that it does not know: did you mean %s?", near)))
			}
		}
	}
	return advice
}
