package resources_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestWordsChosenByASecret has an ordinary word that a secret selects: the property with the word is hidden,
// the word itself is not.
func TestWordsChosenByASecret(t *testing.T) {
	const chosen = "${ Data.pw != '' ? 'enabled' : 'disabled' }"
	for name, first := range map[string]string{
		"a property": `{file: [$DIR/a: {content: "` + chosen + `"}]}`,
		"late":       `{exec: [ask: {command: "printf x"}]}, {file: [$DIR/a: {content: "${ outputs('exec#ask').stdout == 'x' && Data.pw != '' ? 'enabled' : '' }"}]}`,
		"a child":    `{apply: [child.yaml: {data: {state: "` + chosen + `"}}]}`,
		"a jet file": `{apply: [jet.yaml: {data: {pw: "${ Data.pw }"}}]}`,
		"beside it":  `{exec: [ask: {command: "true ${ Data.pw }", environment: [A=enabled], unless: "false"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `
-- root.yaml --
data: {pw: "${ secret('hunter22') }"}
muster:
  resources: [`+first+`, {file: [$DIR/b: {content: "it is enabled\nwith hunter22\n"}]}, {exec: [tell: {command: "echo enabled not hunter22 >&2; exit 1", provider: shell}]}]
-- child.yaml --
data: {state: none}
muster: {resources: [{file: [$DIR/a: {content: "${ Data.state }"}]}]}
-- jet.yaml --
data: {pw: none}
muster: {resources_jet_file: list.jet}
-- list.jet --
- file: [{$DIR/a: {content: "${ Data.pw != '' ? 'enabled' : '' }"}}]
`)
			w.run()
			b := fmt.Sprintf("%+v %s", w.txs["file#b"].Changes, w.txs["file#b"].Properties)
			if strings.Count(b, "it is enabled") != 2 || strings.Contains(b, "hunter22") {
				t.Errorf("of an ordinary file is said: %s", b)
			}
			if said := strings.Join(w.txs["exec#tell"].Errors, ""); !strings.Contains(said, "enabled not "+model.Redacted) {
				t.Errorf("of a command: %s", said)
			}
			if a := w.txs["file#a"]; a != nil && strings.Contains(fmt.Sprintf("%+v %s", a, a.Properties), "enabled") {
				t.Errorf("what is mixed with a secret is shown: %+v", a)
			}
		})
	}
}

// TestReadingWhatWasWrittenWithASecret has a resource that reads the file of another one: the other's secrets
// are hidden here too, however short.
func TestReadingWhatWasWrittenWithASecret(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   string
		hidden bool
	}{
		"a secret":    {`content: "pw=${ Data.pw }"`, `content: "${ readFile('$DIR/a') }"`, true},
		"late":        {`content: "pw=${ Data.pw + outputs('exec#ask').stdout }"`, `content: "${ readFile('$DIR/a') }"`, true},
		"sensitive":   {`content: pw=abc, sensitive: true`, `content: "${ file('$DIR/a') }"`, true},
		"by template": {`content: "pw=${ Data.pw }"`, `content: "${ template('{{ readFile \"$DIR/a\" }}') }"`, true},
		"beside it":   {`content: "pw=${ Data.pw }"`, `content: "${ {'a': readFile('$DIR/a'), 'b': 'pw=abc'}.b }"`, true},
		"of neither":  {`content: pw=abc`, `content: "${ readFile('$DIR/a') }"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `
-- root.yaml --
data: {pw: "${ secret('abc') }"}
muster:
  resources: [{exec: [ask: {command: "true"}]}, {file: [$DIR/a: {`+c.a+`}]}, {file: [$DIR/b: {`+c.b+`}]}]
`)
			w.run()
			if got := w.read("b"); got != "pw=abc" {
				t.Errorf("it wrote %q", got)
			}
			said := fmt.Sprintf("%+v %s", w.txs["file#b"], w.txs["file#b"].Properties)
			if got := !strings.Contains(said, "pw=abc"); got != c.hidden {
				t.Errorf("hidden %t: %s", got, said)
			}
		})
	}
}

// TestSecretsAtCuts has commands whose output is cut within a secret: a long line of the log, and the end of
// a long error.
func TestSecretsAtCuts(t *testing.T) {
	const secret = "correct-horse-battery"
	w := newWorld(t, `
-- root.yaml --
data: {pw: "${ secret('`+secret+`') }"}
muster:
  resources:
    - exec: [log: {command: "cat $DIR/long", logoutput: true}]
    - exec: [fail: {command: "cat $DIR/error >&2; exit 1", provider: shell}]
    - exec: [encode: {command: "cat $DIR/forms >&2; exit 1", provider: shell}]
`)
	w.write("long", strings.Repeat("x", 64<<10-12)+secret+" then\n")
	w.write("error", strings.Repeat("y", 100)+secret+strings.Repeat("z", 2<<10-8)+"\n")
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	w.write("forms", encoded+" "+hex.EncodeToString([]byte(secret))+"\n")
	w.run()
	said := w.log.String() + fmt.Sprint(w.txs["exec#fail"].Errors, w.txs["exec#encode"].Errors)
	for _, part := range []string{"correct-", "xcorr", "-horse", "battery", encoded[8:20], hex.EncodeToString([]byte(secret))[4:12]} {
		if strings.Contains(said, part) {
			i := strings.Index(said, part)
			t.Errorf("%q is shown: %s", part, said[max(0, i-40):min(len(said), i+80)])
		}
	}
	if !strings.Contains(said, model.Redacted+" then") {
		t.Error("what is around the secret is missing")
	}
}
