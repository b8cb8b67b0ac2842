package secrets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-dev/penstock/policies/secrets"
)

// shownOf is a text without its secrets.
func shownOf(text string, parts [][2]int) string {
	var shown strings.Builder
	end := 0
	for _, part := range parts {
		shown.WriteString(text[end:part[0]] + "#")
		end = part[1]
	}
	return shown.String() + text[end:]
}

func TestSecretsWithinTexts(t *testing.T) {
	// What is within ‹› is hidden.
	for _, marked := range []string{
		// Arguments and assignments, quoted or not.
		`--token=‹S3cr›`, `--token='‹S3cr›'`, `--token="‹S3cr›"`, `--token ‹S3cr› x`, `--token '‹S3cr›'`, `--token "‹S3 cr›" x`, "--token\n‹S3cr›",
		`-token ‹S3cr›`, `--PASSWORD=‹S3cr›`, `--pass=‹S3cr›`, `--pwd=‹S3cr›`, `--db-pass ‹word›`, `--wandb_api_key=‹S3cr›`, `model.token=‹S3cr›`, `+trainer.wandb.api_key=‹S3cr›`,
		`--token==‹S3cr›`, `--token:‹S3cr›`, `'--token=‹S3cr›'`, `--token=‹ab@cd›`, `--token=‹a;b,c›`, `--storage-account-key=‹S3cr›`, `dbPass=‹S3cr›`, `TOKEN_2=‹S3cr›`,
		`HF_TOKEN=‹S3cr› python x.py`, `HF_TOKEN='‹S3cr›' python x.py`, `export X_API_KEY="‹S3cr›"; run`, `-eHF_TOKEN=‹S3cr›`, "PASSWORD=`‹cat x›`", `HF_TOKEN=‹$(echo S3cr | base64 -d)› run`,
		`--token='‹a'"b"›`, `--token='‹it'\''s›' x`, `--token="‹a\"b›" x`, `--token=‹a\ b› x`, `--token='‹a'b› x`, `password=‹b'S3cr'›`, "--password='‹S3\ncr›' x",
		`--use-auth-token ‹--password› ‹S3cr› x`, `x auth-token: ‹password:› ‹S3cr›`, `--token="‹S3cr`,
		// Within a command of a shell.
		`sh -c "run --token='‹S3cr›'"`, `sh -c 'run --token="‹S3cr›" --x' y`, `sh -c "run --token=\"‹S3cr›\" --x"`, `sh -c "run --token=‹S3cr›" --lr 1`, `bash -c "HF_TOKEN=‹S3cr› run"`,
		// Files.
		`{"password": "‹S3cr›", "user": "x"}`, `{"a": {"password":"‹S3cr›"}}`, `{\"token\":\"‹S3cr›\",\"a\":\"b\"}`, `{\\\"token\\\": \\\"‹S3cr›\\\", \\\"a\\\": 1}`, `{'token': '‹S3cr›'}`, `{token: ‹S3cr}›`,
		`["--token", "‹S3cr›", "--lr"]`, `[--token, ‹S3cr]›`, "- --token\n- ‹S3cr›\n- --lr", `{"name": "HF_TOKEN", "value": "‹S3cr›"}`, "- name: HF_TOKEN\n  value: ‹S3cr›\n- name: A\n  value: b",
		`password: "‹S3cr›"`, `password: ‹S3cr›`, "a: b\npassword: ‹correct horse battery›\nc: d", "password: |\n  ‹S3cr›\n  ‹other›\nuser: a", "password: >-\n\n  ‹S3cr›\n",
		"db.password=‹correct horse›\nx=y", `token = ‹S3cr›`, `token = "‹S3cr›"`, "token\t=\t‹S3cr›", `token := "‹S3cr›"`, `token => '‹S3cr›'`, "password:\n  ‹S3cr›", "password:\n  user: x",
		`<password>‹S3cr›</password><a>b</a>`, `Server=x;Password=‹S3cr;›`, `machine h login u password ‹hunter›`, `password ‹S3cr›`,
		`{"script": "run --token\n‹S3cr›"}`, `{"script": "export A=1\nHF_TOKEN='‹S3cr›'\nrun"}`,
		`python -c "os.environ['HF_TOKEN']='‹S3cr›'; run()"`, `os.environ["HF_TOKEN"] = "‹S3cr›"`, `os.putenv("HF_TOKEN", "‹S3cr›")`, `login(token='‹S3cr›', x=1)`,
		"token:\n- ‹S3cr›\n- ‹other one›\nuser: a", `{"token":["‹S3cr›","‹b›"],"a":1}`, `{"auths":{"reg":{"auth":"‹dXNlcjpwYXNz›"}}}`,
		"a\n-----BEGIN RSA PRIVATE KEY-----‹\nMIIE\nabc\n›-----END RSA PRIVATE KEY-----\nb", `"-----BEGIN PRIVATE KEY-----‹\nMIIE`,
		// Headers.
		`Authorization: Bearer ‹S3cr›`, `curl -H 'Authorization: ‹Bearer S3cr›' x`, `curl -H Authorization:‹\ Bearer\ x›`, `--auth=Bearer ‹S3cr›`, `-H "X-Api-Key: ‹S3cr›" https://h`, `Authorization: ‹S3cr›`,
		// Addresses.
		`https://‹T0ken›@host/x`, `https://u:‹S3cr›@host/x`, `redis://:‹S3cr›@h:6379/0`, `git+https://‹T0ken›@github.com/x/y@main`, `mongodb+srv://u:‹S/cr›@h`, `https://u:‹p@S›@h/`, `a://u:‹x›@h,a://v:‹y›@g`,
		`https://‹ghp012345678901234567890›:‹x-oauth-basic›@github.com`, `jdbc:postgresql://h/db?user=x&password=‹S3cr›`, `https://host/x?access_token=‹S3cr›`,
		`curl -u u:‹S3cr› https://h`, `curl -u "u:‹S3cr›" x`, `curl --user=u:‹S3cr› x`, `curl -uu:‹S3cr› x`,
	} {
		text := strings.NewReplacer("‹", "", "›", "").Replace(marked)
		want := text
		if strings.Contains(marked, "‹") {
			var parts strings.Builder
			for i, piece := range strings.Split(marked, "‹") {
				if i > 0 {
					_, piece, _ = strings.Cut(piece, "›")
					parts.WriteString("#")
				}
				parts.WriteString(piece)
			}
			want = parts.String()
		}
		if diff := cmp.Diff(want, shownOf(text, secrets.Parts(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestWhatIsNoSecretIsShown: an event in which words, numbers and images are hidden
// says nothing.
func TestWhatIsNoSecretIsShown(t *testing.T) {
	for _, text := range []string{
		"the token is wrong", "a secret must be mounted", "no password was given", "token budget of the team", "each token, and more", "bearer token required",
		"--max-token=4096", "--max-num-batched-tokens 8192", `{"pad_token": "[PAD]", "lr": 0.1}`, "--tokenizer=bert --token-file /run/token", "secretName: registry",
		"http://svc:8080/path", "https://github.com/x/y@main", "ssh://git@github.com/x", "oci://reg.example/x@sha256:0123", "http://h:80/a@b", "s3://bucket/a",
		"nvcr.io/nvidia/pytorch:24.05-py3", "image: reg.example/vault-token:1.2", "--bypass=true", "python -u train.py --lr 0.1", "docker run -u 1000:1000 x", "bash -u http://h", "compass: north", "keyboard=us",
		`{"secret":{"secretName":"x"},"b":"c"}`, "secret: {secretName: x, items: [a]}", `{"token":null,"a":true}`, "token: null\nuser: x", "password:\n  user: x", "password=\nuser=x",
		"auth: basic", `{"auth": "required"}`, "token: \"\"\nuser: x", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", `cd "$TOKEN" && python x.py`, "secret:\n- name: x",
		"torchrun --nnodes=4 --rdzv-endpoint=a-0:29500", "a: b\nc: d", "tokens: 5", "",
	} {
		if shown := shownOf(text, secrets.Parts(text)); shown != text {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

func TestSecretsOfArguments(t *testing.T) {
	for _, tc := range [][3]string{
		{"--token", "S3cr", "#"}, {`"--token"`, "S3cr", "#"}, {"--token=", "-", "#"}, {"x", "--token=a b\nc", "--token=#"}, {"x", `--token="a b"`, "--token=#"}, {"x", "--token=", "--token="}, {"x", "HF_TOKEN=a b", "HF_TOKEN=a b"}, {"-u", "u:S3cr", "u:#"}, {"--user", "1000:1000", "1000:1000"},
		{"--lr", "0.1", "0.1"}, {"token", "bucket", "bucket"}, {"--token", "", ""}, {"--max-token", "4096", "4096"},
	} {
		if shown := shownOf(tc[1], secrets.After(tc[0], tc[1])); shown != tc[2] {
			t.Errorf("%s after %s is shown as %s", tc[1], tc[0], shown)
		}
	}
}

// TestSecretsOfLargeTexts holds the scan to time that grows with a text.
func TestSecretsOfLargeTexts(t *testing.T) {
	for _, piece := range []string{
		"token=", "token='a", `token="`, `token=\"`, "token: ", "a", " ", `\`, `"`, "://", "://a:b@", "x://a:", "--token ", "token:\n", "password: |\n", "token=a'", `token=a"b`, "-u a:",
		"--token --token=", "token \\\n", "'", "`token=", "token'", "<token>", "token,value", "bearer ", "token=x:", "token=$(", "token:\n- ", "token: [", `token: ["a",`, `("token", "`, "auth: ", "-u:", "-----BEGIN PRIVATE KEY-----", "PRIVATE KEY-----", "é token=",
	} {
		text := strings.Repeat(piece, (1<<20)/len(piece))
		start := time.Now()
		secrets.Parts(text)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q took %s", piece, took)
		}
	}
	var nested strings.Builder
	for i := 0; nested.Len() < 1<<20; i++ {
		nested.WriteString("token=" + strings.Repeat(`\`, i%20) + string("'\"`"[i%3]) + "a ")
	}
	start := time.Now()
	secrets.Parts(nested.String())
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("quotes within quotes took %s", took)
	}
}

// FuzzParts: parts are in order and within the text.
func FuzzParts(f *testing.F) {
	for _, text := range []string{`--token='a'"b" c`, "password: |\n a\n", `{\"token\":\"x\"}`, "https://a:b@c", "token=\\", `token "`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := -1
		for _, part := range secrets.Parts(text) {
			if part[0] <= end || part[1] <= part[0] || part[1] > len(text) {
				t.Fatalf("%v in %q", part, text)
			}
			end = part[1]
		}
	})
}
