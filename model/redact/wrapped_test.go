package redact_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
)

// folded returns the lines of a text that is wrapped at a width.
func folded(text string, width int) []string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}

	return append(lines, text)
}

// TestRedactorOfWrappedOutput redacts the output of programs that wrap lines.
func TestRedactorOfWrappedOutput(t *testing.T) {
	const chars = `abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:;/+= $%\"'`
	r := rand.New(rand.NewPCG(1, 2))
	digits := func(s string) string { return hex.EncodeToString([]byte(s)) }
	for range 40 {
		secret := make([]byte, 20+r.IntN(2980))
		for i := range secret {
			secret[i] = chars[r.IntN(len(chars))]
		}
		before := "users:"[:r.IntN(7)]
		redactor := redact.New(model.NewSecret(string(secret)))
		for _, form := range []struct {
			name  string
			print func(string) string
			width int
		}{
			{"base64 -w20", base, 20}, {"base64 -w60", base, 60}, {"base64 -w64", base, 64}, {"base64 -w76", base, 76},
			{"xxd -p", digits, 60}, {"fold -w20", strings.Clone, 20}, {"fold -w70", strings.Clone, 70},
		} {
			lines := folded(form.print(before+string(secret)), form.width)
			for i, line := range lines {
				checkLine(t, form.name, line, redactor.RedactLine(line), i == 0)
			}
			last := lines[max(0, len(lines)-10):]
			got := redactor.Redact("exit code 1, expected 0: " + strings.Join(last, "\n"))
			if !strings.HasPrefix(got, "exit code 1, expected 0: ") {
				t.Errorf("%s: what is before it went: %.60q", form.name, got)
			}
			for _, line := range last {
				checkLine(t, form.name, line, got, len(last) == len(lines))
			}
		}
	}
}

// checkLine searches a redacted line for 12 consecutive characters of the original line.
func checkLine(t *testing.T, form, line, got string, first bool) {
	t.Helper()
	from := 0
	if first {
		from = 12
	}
	for ; from+12 <= len(line); from++ {
		if strings.Contains(got, line[from:from+12]) {
			t.Errorf("%s: %q leaves %.300q", form, line, got)
			return
		}
	}
}

// TestRedactorKeepsOrdinaryLines has lines that only have something in common with
// a secret.
func TestRedactorKeepsOrdinaryLines(t *testing.T) {
	long := "postgres://app:correct-horse-battery@db.example.com:5432/production"
	secrets := []model.Secret{model.NewSecret(long), model.NewSecret("enabled"), model.NewSecret("8080"), model.NewSecret("abc"), model.NewDerived("is running now")}
	r := redact.New(secrets...)
	for in, want := range map[string]string{
		"the service is enabled":               "the service is [redacted]",
		"it is enable":                         "it is enable",
		"abc":                                  "abc",
		"listening on 808":                     "listening on 808",
		"nginx is running now":                 "nginx is running now",
		"production":                           "production",
		"db.example.":                          "db.example.",
		"connected to db.example.com, waiting": "connected to db.example.com, waiting",
		"db.example.com is up":                 "db.example.com is up",
		"horse-battery@db":                     "[redacted]",
		"  horse-battery@db\r":                 "  [redacted]\r",
		"as postgres://app:cor":                "as [redacted]",
		"com:5432/production, reading":         "[redacted], reading",
		"":                                     "",
		"        ":                             "        ",
	} {
		if got := r.RedactLine(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
	// A value of one line is not the output of a program: a host stays readable.
	for _, in := range []string{"db.example.com", "Get it: db.example.com:5432", "/production"} {
		if got := r.Redact(in); got != in {
			t.Errorf("%q becomes %q", in, got)
		}
	}
	for _, in := range []string{"horse-battery@db\nx", `{"error":"x\nhorse-battery@db\n"}`} {
		if got := r.Redact(in); strings.Contains(got, "battery") {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

// BenchmarkNew measures what many secrets, and a long one, cost to begin with.
func BenchmarkNew(b *testing.B) {
	var many []model.Secret
	for i := range 100 {
		many = append(many, model.NewSecret(fmt.Sprintf("a-secret-with-number-%d", i)))
	}
	for name, secrets := range map[string][]model.Secret{"hundred": many, "long": {model.NewSecret(strings.Repeat("0123456789abcdef", 4096))}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				redact.New(secrets...)
			}
		})
	}
}
