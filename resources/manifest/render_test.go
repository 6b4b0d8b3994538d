package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
)

func render(t *testing.T, text string, in manifest.Inputs) string {
	t.Helper()
	out, err := resolved(t, text, in).Render()
	if err != nil {
		t.Fatal(err)
	}

	return string(out)
}

// TestRender checks rendered manifests.
func TestRender(t *testing.T) {
	got := render(t, `
data: {pw: "${ secret('hunter2') }", n: 0644}
ccm:
  fail_on_error: true
  flapping: {repairs: 3, within: 2m}
  limit: 30
  pre_message: "on ${ Facts.os } $${x}"
  post_message: done
  resources:
    - exec:
        - uptime:
        - '/bin/echo "a": b':
    - file:
        - defaults: {owner: root, mode: "${ Data.n }"}
        - /etc/app.conf:
            contents: |
              user=${ Facts.os }
              path=$${PATH} {{ '{{' }} x }}
            env: {PW: "${ Data.pw }", EMPTY: "", "a b": " x"}
            args: [yes, "no", 1.10, "1.10"]
            data: {empty: [null, [], {}], list: [{a: 1, b: [x]}, {c: "x\ty"}], crlf: "a\r\n", keep: "a\n\n", strip: "a\nb", sep: "a\Lb", bin: !!binary /w==}
            control: {if: "true"}
        - /hidden: {sensitive: true, content: plain, alias: h, count: 5}
        - /late: {content: "${ outputs('exec#uptime').stdout } ${ Data.n }", owner: null}
        - /off: {content: "x", control: {if: "Facts.os == 'rhel'"}}
    - exec:
        name: defaults
    - exec:
        name: `+strings.Repeat("long ", 100)+`
`, manifest.Inputs{})
	want := `data:
  "n": "0644"
  pw: "[redacted]"
muster:
  fail_on_error: true
  flapping:
    repairs: 3
    within: "2m0s"
  limit: 30
  pre_message: "on debian $${x}"
  post_message: done
  resources:
    - exec:
        - uptime:
    - exec:
        - "/bin/echo \"a\": b":
    - file:
        - /etc/app.conf:
            contents: |
              user=debian
              path=$${PATH} {{ '{{' }} x }}
            env:
              PW: "[redacted]"
              EMPTY: ""
              a b: " x"
            args:
              - "yes"
              - "no"
              - 1.10
              - "1.10"
            data:
              empty:
                -
                - []
                - {}
              list:
                - a: 1
                  b:
                    - x
                - c: "x\ty"
              crlf: "a\r\n"
              keep: |+
                a

              strip: |-
                a
                b
              sep: "a\Lb"
              bin: !!binary "/w=="
            owner: root
            mode: "0644"
    - file:
        - /hidden:
            sensitive: true
            content: "[redacted]"
            alias: h
            count: 5
            owner: "[redacted]"
            mode: "[redacted]"
    - file:
        - /late:
            content: "${ outputs('exec#uptime').stdout } ${ Data.n }"
            owner:
            mode: "0644"
    - file:
        - /off:
            content: x
            owner: root
            mode: "0644"
            control:
              if: "false"
    - exec:
        name: defaults
    - exec:
        name: ` + strings.TrimSpace(strings.Repeat("long ", 100)) + "\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if strings.Contains(got, "hunter2") {
		t.Error("the secret is shown")
	}
}

// TestRenderAgain checks that a rendered manifest resolves to the same result.
func TestRenderAgain(t *testing.T) {
	in := `
muster:
  resources:
    - file:
        - "/a ${ Facts.os } $${x}":
            content: "$${PATH} $$${x} {{ '{{' }} {{ '{{' }}{ {{ '{{' }}${ Facts.cores }"
            args: ["${ 'a\\nb\\n' }", " lead", "trail ", "#x", "- y", "a: b", "'", "\"", "\\", "\x00", "\u0085", "💡"]
            env: {"${ Facts.os }": "x", "{{ '{{' }}": "y"}
            data: {n: 1.10, o: 0644, b: true, s: "true", z: null, e: {}, l: []}
    - exec:
        - "0644":
        - "null": {}
`
	first := resolved(t, in, manifest.Inputs{})
	text, err := first.Render()
	if err != nil {
		t.Fatal(err)
	}
	second := resolved(t, string(text), manifest.Inputs{})
	if a, b := describe(t, first), describe(t, second); a != b || len(first.Resources) != 3 {
		t.Errorf("first  %s\nsecond %s\n%s", a, b, text)
	}
	again, err := second.Render()
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("first\n%s\nsecond\n%s", text, again)
	}
	if !second.Static {
		t.Error("what is rendered is not static")
	}
}

// FuzzRender renders any text as a property and as a name, and reads it back.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"a", "a\n", "\na", " a\nb", "a \n\n", "${x}", "$${", "{{{", "{{ '", "\xff", "\u2028\n", "\ta\n", "a\n\tb", "# x\ny", "yes", "~", "1e3", "a: b", "-\n", "\r\n", "x\n \n", "defaults"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := resolved(t, `{"muster": {"resources": [{"file": [{"${ Data.n }": {"content": "${ Data.s }", "args": ["${ Data.s }"], "env": {"${ Data.n }": "x"}}}]}]}}`, manifest.Inputs{Data: map[string]any{"s": s, "n": "n" + strings.ToValidUTF8(s, "")}})
		text, err := r.Render()
		if err != nil {
			t.Fatal(err)
		}
		again := resolved(t, string(text), manifest.Inputs{})
		if a, b := describe(t, r), describe(t, again); a != b || again.Resources[0].Spec.(*thingSpec).Content != s {
			t.Fatalf("first  %s\nsecond %s\n%s", a, b, text)
		}
	})
}
