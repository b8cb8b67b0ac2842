package webhooks_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/webhooks"
)

// Characters that a secret of a form is made of; a form that quotes by itself takes all.
const (
	bareCharacters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+/=.~%^*"
	quotedCharacters = bareCharacters + ` @:,;&|(){}[]<>!?#$`
	anyCharacters    = quotedCharacters + "\"'\\`\n\t<>&é"
)

// secretForms are the ways in which people write secrets into texts; %s is the secret.
var secretForms = map[string][]string{
	bareCharacters: {
		"--token=%s", "--token=%s --lr 0.1", "--token %s", "--token\n%s", "--token\t%s x", "run --hf_token=%s", "--pass=%s", "--pwd=%s x", "HF_TOKEN=%s python x.py", "export X_API_KEY=%s; run", "-eHF_TOKEN=%s",
		"token = %s", "token: %s", "a: b\npassword: %s\nc: d", "db.password=%s\nx=y", "password:\n  %s", "{token: %s}", "[--token, %s]", "- --token\n- %s\n", "- name: HF_TOKEN\n  value: %s",
		"Authorization: Bearer %s", "--auth=Bearer %s", "https://host/x?access_token=%s&a=b", "curl -u u:%s https://h", "--user=u:%s",
		`sh -c "run --token=%s"`, `sh -c 'HF_TOKEN=%s run'`, "password: |\n  %s\nuser: a", "<password>%s</password>", "--set=a=b,db.password=%s,c=d", "--use-auth-token --password %s", "token: %s # a note", "the password %s was used",
		"tokens:\n  token:\n  - %s\n", "curl -uu:%s https://h",
	},
	quotedCharacters: {
		`--token='%s'`, `--token="%s"`, `--token '%s'`, `--token "%s" --lr 1`, `HF_TOKEN='%s' run`, `export X_API_KEY="%s"`, `X_API_KEY="%s"; run`, `{"password": "%s"}`, `{"password":"%s","user":"x"}`, `password: "%s"`, `password: '%s'`,
		`token = "%s"`, `{\"token\":\"%s\",\"a\":1}`, `{\\\"token\\\": \\\"%s\\\"}`, `["--token", "%s"]`, `{"name":"HF_TOKEN","value":"%s"}`, `sh -c "run --token='%s'"`, `sh -c 'run --token="%s" --x' y`, `sh -c "run --token=\"%s\""`,
		`curl -H "Authorization: Bearer %s" x`, `curl -H 'X-Api-Key: %s' x`, `--token "%s`, `token="%s`, `os.environ['HF_TOKEN'] = '%s'`, `os.putenv("HF_TOKEN", "%s")`, `{"token":["%s"],"a":1}`, "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n", "password: >-\n  %s\n",
	},
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%.~": {
		"https://%s@host/x", "git+https://%s@github.com/x/y", "https://user:%s@host", "redis://:%s@h:6379/0", "postgres://u:%s@h/db?x=y", "clone https://oauth2:%s@gitlab/x.git", `DB="postgres://u:%s@h/db"`,
	},
}

// anySecret is one of some characters that is no ordinary word.
func anySecret(random *rand.Rand, characters string) string {
	all := []rune(characters)
	secret := []rune{'S'} // what begins with a space or a sign may mean another thing
	for range 9 + random.IntN(30) {
		secret = append(secret, all[random.IntN(len(all))])
	}
	return string(secret) + strconv.Itoa(1000+random.IntN(9000))
}

// placed is an object that holds a text at a place, and a secret once more if it is
// written alone elsewhere.
func placed(place int, text, copied string) string {
	object := map[string]any{"metadata": map[string]any{"name": "a", "annotations": map[string]any{"copied": "is " + copied}}}
	container := map[string]any{"name": "c", "image": "nvcr.io/nvidia/pytorch:24.05-py3", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}}
	object["spec"] = map[string]any{"containers": []any{container}}
	switch place {
	case 0:
		object["metadata"].(map[string]any)["annotations"].(map[string]any)["note"] = text
	case 1:
		object["data"] = map[string]any{"app.conf": text}
	case 2:
		container["args"] = []any{"--lr=0.1", text}
	case 3:
		container["command"] = []any{"sh", "-c", text}
	case 4:
		container["env"] = []any{map[string]any{"name": "A", "value": text}}
	case 5:
		object["command"] = []any{"sh", "-c", text} // of an exec
	case 6:
		container["lifecycle"] = map[string]any{"postStart": map[string]any{"exec": map[string]any{"command": []any{text}}}}
	}
	written, _ := json.Marshal(object)
	return string(written)
}

const places = 7

// quotingRules quote what objects hold in many ways.
func quotingRules() []*v1.WorkloadPolicy {
	var rules []*v1.WorkloadPolicy
	for i, body := range []string{
		`walk(input.object, [_, text]); is_string(text); msg := sprintf("text %s", [text])`,
		`walk(input.object, [_, text]); is_string(text); msg := sprintf("%q and %v", [text, [text]])`,
		`msg := sprintf("%v", [input.object])`,
		`msg := json.marshal(input.object)`,
		`walk(input.object, [_, text]); is_string(text); some word in regex.split("[ \n\t]+", text); msg := sprintf("word %s", [word])`,
		`walk(input.object, [_, text]); is_string(text); msg := sprintf("%2030s%s", ["", text])`,
		`walk(input.object, [_, text]); is_string(text); msg := concat(" ", regex.split("[ \n\t]+", text))`,
	} {
		rules = append(rules, policyOn("p"+strconv.Itoa(i), "", "Pod", body+`; field := "spec"`, warns))
	}
	return rules
}

// leaked is a piece of a secret that stands in an event.
func leaked(event any, secret string) string {
	switch event := event.(type) {
	case map[string]any:
		for _, member := range event {
			if piece := leaked(member, secret); piece != "" {
				return piece
			}
		}
	case []any:
		for _, element := range event {
			if piece := leaked(element, secret); piece != "" {
				return piece
			}
		}
	case string:
		const window = 9
		for at := 0; at+window <= len(secret); at++ {
			if piece := secret[at : at+window]; strings.Contains(event, piece) {
				return fmt.Sprintf("%q in %q", piece, event)
			}
		}
	}
	return ""
}

// TestSecretsAreNeverLogged writes random secrets in random forms to random places,
// which rules then quote.
func TestSecretsAreNeverLogged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var requests []*admissionv1.AdmissionRequest
	var secrets, texts []string
	for _, characters := range slices.Sorted(maps.Keys(secretForms)) {
		for _, form := range secretForms[characters] {
			for place := range places {
				secret := anySecret(random, characters)
				text := strings.Replace(form, "%s", secret, 1)
				requests = append(requests, podRequest(t, placed(place, text, secret)))
				secrets, texts = append(secrets, secret), append(texts, text)
			}
		}
	}
	for place := range places { // a form that quotes whatever there is
		for range 20 {
			secret := anySecret(random, anyCharacters)
			text, _ := json.Marshal(map[string]any{"user": "x", "password": secret, "z": 1})
			requests = append(requests, podRequest(t, placed(place, string(text), secret)))
			secrets, texts = append(secrets, secret), append(texts, string(text))
		}
	}
	events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, "^$")}, quotingRules(), requests...)
	if len(events) != len(requests) {
		t.Fatalf("got %d events of %d", len(events), len(requests))
	}
	for i, event := range events {
		if piece := leaked(event, secrets[i]); piece != "" {
			t.Errorf("of %q: %.400s", texts[i], piece)
		}
		whole, _ := json.Marshal(event)
		for _, plain := range []string{"nvcr.io/nvidia/pytorch:24.05-py3", `"nvidia.com/gpu":"8"`, `"annotations":{"copied":"is `} {
			if !strings.Contains(string(whole), plain) {
				t.Errorf("of %q, %s is not shown", texts[i], plain)
			}
		}
	}
}

// TestDecisionLogOfManySecrets holds what masks to time that grows with an object, as
// does TestDecisionLogOfLargeValues, whatever its secrets look like.
func TestDecisionLogOfManySecrets(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	many := func(count int, form string) string {
		var text strings.Builder
		for range count {
			fmt.Fprintf(&text, form, "SECRET"+anySecret(random, "abcdefgh0123456789"))
		}
		return text.String()
	}
	for name, text := range map[string]string{
		"many":            many(20000, "token=%s "),
		"many words":      "token='" + many(20000, "%s ") + "'",
		"many pieces":     "token='" + many(20000, "%s,") + "'",
		"lines":           "password: |\n" + many(20000, "  %s\n"),
		"escapes":         `token="SECRET` + strings.Repeat(`\\\"`, 250000) + `"`,
		"marks":           "token=SECRETabc1 " + strings.Repeat("…", 300000),
		"the same within": many(1, "token='%s") + strings.Repeat("a1", 250000) + "' token=" + strings.Repeat("a1", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{"name": "a"}, "data": map[string]any{"a": text}})
			rule := policyOn("p", "", "Pod", `msg := sprintf("%s", [input.object.data.a]); field := "spec"`)
			start := time.Now()
			events := logOf(t, webhooks.DecisionLogOptions{Mask: maskOf(t, ".*")}, []*v1.WorkloadPolicy{rule}, podRequest(t, string(raw)))
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if whole, _ := json.Marshal(events); len(events) != 1 || strings.Contains(string(whole), "SECRET") {
				t.Errorf("got %d events, or a secret in them: %.300s", len(events), whole)
			}
		})
	}
}
