package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
)

func TestRedactor(t *testing.T) {
	r := redact.New(model.NewSecret("s3cret-value"), model.NewSecret("s3cret-value-longer"), model.NewSecret("first line\n  second line\n"), model.NewSecret("abc"), model.NewDerived("enabled"))
	cases := map[string]string{
		"the s3cret-value here":        "the [redacted] here",
		"the s3cret-value-longer here": "the [redacted] here",
		"it printed second line":       "it printed [redacted]",
		"abc is too short to hide":     "abc is too short to hide",
		"it is enabled":                "it is enabled",
		"":                             "",
	}
	for in, want := range cases {
		if got := r.Redact(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := (redact.Redactor{}).Redact("as it was"); got != "as it was" {
		t.Error(got)
	}
	overlapping := redact.New(model.NewSecret("one-two"), model.NewSecret("two-three"))
	if got := overlapping.Redact("a one-two-three b"); got != "a [redacted] b" {
		t.Error("of two that overlap:", got)
	}
}

// forms are the functions that print a text as programs do.
var forms = map[string]func(string) string{
	"as it is":            func(s string) string { return s },
	"base64":              func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, URL":         func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64, unpadded":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64, lines":       func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(s)), "\n") },
	"base64, indented":    func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(s)), "\r\n    ") },
	"base64, in a URL":    func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"hex":                 func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":                 func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex, lines":          func(s string) string { return wrapped(hex.EncodeToString([]byte(s)), "\n") },
	"query":               url.QueryEscape,
	"path":                url.PathEscape,
	"every byte":          func(s string) string { return percents(s, "%%%02X") },
	"every byte, small":   func(s string) string { return percents(s, "%%%02x") },
	"JSON":                func(s string) string { return asJSON(s, true) },
	"JSON, not for HTML":  func(s string) string { return asJSON(s, false) },
	"JSON in JSON":        func(s string) string { return asJSON(asJSON(s, true), true) },
	"JSON, ASCII":         func(s string) string { return ascii(s) },
	"%q":                  strconv.Quote,
	"%+q":                 strconv.QuoteToASCII,
	"YAML":                func(s string) string { b, _ := yaml.Marshal(s); return string(b) },
	"YAML, single quotes": func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
	"shell":               func(s string) string { return shellquote.Join(s) },
	"shell, quotes":       func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
	"shell, single":       func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
}

func wrapped(s, with string) string {
	var lines []string
	for ; len(s) > 12; s = s[12:] {
		lines = append(lines, s[:12])
	}

	return strings.Join(append(lines, s), with)
}

func percents(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}

	return b.String()
}

func asJSON(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s)

	return strings.TrimSpace(b.String())
}

// ascii is how Python and JavaScript write JSON.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range asJSON(s, true) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}

	return b.String()
}

// TestRedactorForms has a secret printed in all forms, at the three places that
// base64 knows, alone and in texts.
func TestRedactorForms(t *testing.T) {
	for _, secret := range []string{"hunter22", "p@ss w/rd", `it's a "quo\te"`, "$(x) `y` & <z>;*?", "grüße 😀 welt", "tab\tand\x01control", "100%+sure=", "long-" + strings.Repeat("abcdef0123456789", 20), "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQDD\n-----END KEY-----\n"} {
		r := redact.New(model.NewSecret(secret))
		for name, form := range forms {
			for _, around := range [][2]string{{"", ""}, {"a", "b"}, {"ab", "c"}, {"user:", "@host"}} {
				checkForm(t, r, name, form, around[0], secret, around[1])
			}
		}
	}
}

// checkForm redacts the form of a text with a secret and searches the result for parts of the secret.
func checkForm(t *testing.T, r redact.Redactor, name string, form func(string) string, before, secret, after string) {
	t.Helper()
	in := "it said " + form(before+secret+after) + " and ended"
	got := r.Redact(in)
	left := strings.ReplaceAll(got, model.Redacted, "\x00")
	if name == "YAML" || strings.HasSuffix(name, "lines") || strings.HasSuffix(name, "indented") {
		left = strings.Join(strings.Fields(left), "")
	}
	core := form(secret)
	switch {
	case strings.HasPrefix(name, "base64"):
		enc := base64.StdEncoding
		if strings.Contains(name, "URL") && name != "base64, in a URL" || strings.Contains(name, "unpadded") {
			enc = base64.URLEncoding
		}
		// Six bits a character: those that the secret alone decides.
		whole := enc.EncodeToString([]byte(before + secret + after))
		core = whole[(len(before)*8+5)/6 : (len(before)+len(secret))*8/6]
		if name == "base64, in a URL" {
			core = url.QueryEscape(core)
		}
	case strings.HasPrefix(name, "hex"), name == "HEX":
		core = strings.Join(strings.Fields(core), "")
	default:
		core = strings.Trim(strings.TrimSpace(core), `'"\`)
	}
	if !strings.Contains(got, model.Redacted) || core != "" && strings.Contains(left, core) {
		t.Errorf("%s of %q within %q %q leaves %q in\n%s\nof\n%s", name, secret, before, after, core, got, in)
	}
	if !strings.HasPrefix(got, "it said ") || !strings.HasSuffix(got, " and ended") {
		t.Errorf("%s of %q: what is around it went: %s", name, secret, got)
	}
}

// TestRedactorOfShortSecrets has what a short secret does not redact: its own
// text counts from four bytes on, its base64 from five.
func TestRedactorOfShortSecrets(t *testing.T) {
	for secret, cases := range map[string]map[string]string{
		"":     {"nothing": "nothing"},
		"a":    {"a cat": "a cat", "61": "61", "YQ==": "YQ=="},
		"abc":  {"abc": "abc", "616263": "616263", "YWJj": "YWJj"},
		"true": {"true": "[redacted]", "74727565": "[redacted]", "dHJ1ZQ==": "dHJ1ZQ==", "it is t": "it is t"},
		"admin": {
			"the admin": "the [redacted]", "YWRtaW4=": "[redacted]", "an administrator": "an [redacted]istrator", "adm": "adm",
		},
	} {
		r := redact.New(model.NewSecret(secret))
		for in, want := range cases {
			if got := r.Redact(in); got != want {
				t.Errorf("secret %q: %q becomes %q, not %q", secret, in, got, want)
			}
		}
	}
}

// TestRedactorAtCuts redacts texts that end in the middle of a secret with a mark of the cut.
func TestRedactorAtCuts(t *testing.T) {
	r := redact.New(model.NewSecret("correct-horse-battery"))
	for in, want := range map[string]string{
		"it was correct-ho…":                         "it was [redacted]…",
		"it was correct-ho … (cut)":                  "it was [redacted] … (cut)",
		"…se-battery was it":                         "…[redacted] was it",
		"…\ufffdbattery was it":                      "…\ufffd[redacted] was it",
		"a corre\n… 17 bytes dropped …\nbattery b":   "a [redacted]\n… 17 bytes dropped …\n[redacted] b",
		"…t-horse-bat…":                              "…[redacted]…",
		"Y29ycmVjdC1ob3…":                            "[redacted]…",
		"…1iYXR0ZXJ5 b":                              "…[redacted] b",
		"cor…":                                       "cor…",
		"it was corre":                               "it was corre",
		"correction… of a battery":                   "correction… of a battery",
		"…battery":                                   "…[redacted]",
		"…ery":                                       "…ery",
		strings.Repeat("x", 1<<16-5) + "corre" + "…": strings.Repeat("x", 1<<16-5) + "[redacted]…",
		"… and correct-horse-battery, and then corre…": "… and [redacted], and then [redacted]…",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("%.60q: got %.80q, want %.80q", in, got, want)
		}
	}
}

func TestRedactorInADiff(t *testing.T) {
	secret := "correct-horse-battery"
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	diff := "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+" + encoded[:20] + "\n+" + encoded[20:] + "\n"
	got := redact.New(model.NewSecret(secret)).Redact(diff)
	if want := "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+dXNlcj[redacted]\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// FuzzRedact prints a secret within a text in every form.
func FuzzRedact(f *testing.F) {
	f.Add("hunter22", "user:", "@host")
	f.Add("p@ss w/rd+%", "a", "")
	f.Add(`it's "q\uo"te`, "\\", "\\u00")
	f.Add("grüße 😀", "%", "%20")
	f.Add("line one\nline two\n", "\n", "  ")
	f.Add("YWJjZGVm", "ab", "=")
	f.Add("correct horse battery: staple", "user: ", "@host")
	f.Add("ONSWG4TFOQ======", "A", "B")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		trimmed := strings.TrimSpace(secret)
		if len(trimmed) < 6 || len(before+secret+after) > 1<<10 || trimmed != secret || strings.ContainsAny(secret, "\x00\n\r") || strings.Contains(before+secret+after, "redacted") || strings.Contains("it said  and ended", secret) {
			return
		}
		for _, s := range []string{secret, before, after} {
			// Invalid UTF-8 cannot be restored after it was printed.
			if !utf8.ValidString(s) || strings.ContainsAny(s, "…\ufffd\x00") || strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f && unicode.IsControl(r) }) {
				return
			}
		}
		r := redact.New(model.NewSecret(secret))
		for name, form := range forms {
			got := r.Redact("it said " + form(before+secret+after) + " and ended")
			if !strings.Contains(got, model.Redacted) {
				t.Errorf("%s of %q within %q %q: %s", name, secret, before, after, got)
			}
		}
		// Colours within colours are not redacted.
		if strings.ContainsFunc(before+secret+after, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		for name, form := range encodedForms() {
			got := r.Redact("it said:\n" + form(before+secret+after) + "\nand ended")
			if !strings.Contains(got, model.Redacted) {
				t.Errorf("%s of %q within %q %q: %s", name, secret, before, after, got)
			}
		}
	})
}

// BenchmarkRedact measures a log line and a diff, without secrets and with a hundred.
func BenchmarkRedact(b *testing.B) {
	var many []model.Secret
	for i := range 100 {
		many = append(many, model.NewSecret(fmt.Sprintf("a-secret-with-number-%d", i)))
	}
	line := "file#/etc/motd changed ensure=present runtime=3ms provider=posix"
	diff := strings.Repeat("+a line of a configuration = \"a value\" # 100%\n", 200)
	for name, r := range map[string]redact.Redactor{"none": {}, "hundred": redact.New(many...)} {
		for kind, text := range map[string]string{"line": line, "diff": diff} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					r.Redact(text)
				}
			})
		}
	}
}
