package command_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
)

// TestSplit covers the table of quoting.
func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"echo hello world":        {"echo", "hello", "world"},
		"echo 'hello world'":      {"echo", "hello world"},
		`echo "hello world"`:      {"echo", "hello world"},
		`echo hello\ world`:       {"echo", "hello world"},
		`echo "it's a test"`:      {"echo", "it's a test"},
		"  echo\t$HOME | wc > x ": {"echo", "$HOME", "|", "wc", ">", "x"},
	} {
		if got, err := command.Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gave %q, %v", line, got, err)
		}
	}
	for line, want := range map[string]error{
		"":      command.ErrNoProgram,
		"  ":    command.ErrNoProgram,
		"''":    command.ErrNoProgram,
		`"" a`:  command.ErrNoProgram,
		"a\x00": command.ErrNUL,
		"a 'b":  command.LineError{Reason: "cannot be split into words: Unterminated single-quoted string", Hint: "close the quote"},
	} {
		if got, err := command.Split(line); !errors.Is(err, want) {
			t.Errorf("%q gave %q, %v", line, got, err)
		}
	}
}

// TestShellSyntax has what a shell acts on, in every state of the quoting.
func TestShellSyntax(t *testing.T) {
	for line, want := range map[string]string{
		"ls | wc > out":                "|",
		"cd /tmp && ls":                "&&",
		"a || b":                       "||",
		"a ; b":                        ";",
		"a > b":                        ">",
		"a >> b":                       ">>",
		"a < b":                        "<",
		"a 2>&1":                       "2>&1",
		"a 2>/dev/null":                "2>/dev/null",
		"a >/dev/null":                 ">/dev/null",
		"a &":                          "&",
		"echo $HOME/x":                 "$HOME",
		`echo "a $HOME"`:               "$HOME",
		"echo a$(id)":                  "$(",
		"echo '$HOME' '|'":             "",
		`echo "|" \| \$HOME`:           "",
		`find . \;`:                    "",
		"awk '{print $1}' x":           "",
		"grep x$ $1 $":                 "",
		"c;d >x >=1":                   "",
		"echo a|b":                     "a|b",
		"echo a| b":                    "a|",
		"grep -E 'a|b' \"c|\"":         "",
		"echo x; id":                   "x;",
		"echo x;":                      "x;",
		`find x\;`:                     "",
		"echo `date`":                  "`",
		"echo \"at `date`\"":           "`",
		"echo '`date`'":                "",
		"echo \\`date\\`":              "",
		`"it's" $HOME`:                 "$HOME",
		`a "\"" | b`:                   "|",
		"":                             "",
		`a \`:                          "",
		"rm -f /x/*.log":               "*",
		"ls a?c":                       "?",
		"ls [ab]c":                     "[ab]",
		"mkdir -p /x/{a,b}":            "{a,b}",
		"touch f{1..3}":                "{1..3}",
		"ls ~/x":                       "~/",
		"ls ~":                         "~",
		"ls ~ann/x":                    "~ann/",
		`rm "/a b"/*`:                  "*",
		"rm '*' \"?\" \\[a]":           "",
		"rm '~/x' \\~":                 "",
		"find . -exec ls {} +":         "",
		"test [ -n x ]":                "",
		`find . -name \*.log`:          "",
		`find . -name "\*.log"`:        "",
		`rm a\*b \{a,b\} \[a\]`:        "",
		`rm \*.log *.txt`:              "*",
		"nc [::1] 80":                  "",
		"nc [::1]:80 [fe80::1%eth0]:1": "",
		"nc [::ffff:10.0.0.1]":         "",
		"ls [::1]*":                    "*",
		"ls [[:alpha:]]x":              "[[:alpha:]",
		"tar --exclude=*.log -c x*":    "*",
		"grep -r --include=*.go x":     "",
		"rm --x={a,b}":                 "{a,b}",
		"echo ${HOME}":                 "${",
		`echo "${HOME}" '${X}'`:        "${",
		`echo '${X}' \${Y}`:            "",
		"ls [a:b]":                     "[a:b]",
		"curl http://h/?a=b":           "",
		"curl https://h/[1-3]":         "",
		"x --format={{.A}} a~":         "",
	} {
		if got := command.ShellSyntax(line); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
	for _, value := range []string{"|", "$HOME", "a && b", "'", "a|b", "x;", "`", "*", "~", "~/x", "{a,b}", "[a]"} {
		line, inserted := insert("a % x% '%'", value)
		if got := command.ShellSyntax(line, inserted...); got != "" {
			t.Errorf("%q, which is inserted: %q", value, got)
		}
		if line, inserted = insert("a % | b", value); command.ShellSyntax(line, inserted...) != "|" {
			t.Errorf("%q hides the | after it", value)
		}
	}
}

// insert puts values in the places of a template that a % marks; the last value is
// for all places that are left.
func insert(template string, values ...string) (line string, inserted [][2]int) {
	for i, own := range strings.Split(template, "%") {
		if i > 0 {
			value := values[min(i, len(values))-1]
			inserted = append(inserted, [2]int{len(line), len(line) + len(value)})
			line += value
		}
		line += own
	}

	return line, inserted
}

// TestSplitInserted has values in every state of the quoting.
func TestSplitInserted(t *testing.T) {
	for template, want := range map[string][]string{
		"%":             {"%"},
		"% %":           {"%", "%"},
		"%%":            {"%%"},
		"a%b":           {"a%b"},
		`"% y"`:         {"% y"},
		`'% y'%`:        {"% y%"},
		"--f=%":         {"--f=%"},
		`\%x`:           {"%x"},
		`"\%"`:          {`\%`},
		`a "%"'%'\ % b`: {"a", "%% %", "b"},
		"a \\\n% b":     {"a", "%", "b"},
		"a '' % \"\"":   {"a", "", "%", ""},
	} {
		for _, value := range []string{"v", "a b", " ", "'", `"`, `\`, "\n", "'; rm -rf /", "$(id)", "`id`", "\xff'", "é", "%"} {
			line, inserted := insert(template, value)
			got, err := command.Split(line, inserted...)
			for i := range got {
				if got[i] != strings.ReplaceAll(want[i], "%", value) {
					t.Errorf("%q with %q gave %q", template, value, got)
				}
			}
			if err != nil || len(got) != len(want) {
				t.Errorf("%q with %q gave %q, %v", template, value, got, err)
			}
		}
	}
	line, inserted := insert("a % b%", "", "")
	if got, err := command.Split(line, inserted...); err != nil || !slices.Equal(got, []string{"a", "", "b"}) {
		t.Errorf("without values: %q, %v", got, err)
	}
	line, inserted = insert("% a", "")
	if got, err := command.Split(line, inserted...); !errors.Is(err, command.ErrNoProgram) {
		t.Errorf("without a program: %q, %v", got, err)
	}
	line, inserted = insert(`a "%`, `b"`)
	if got, err := command.Split(line, inserted...); err == nil {
		t.Errorf("a value closed a quote: %q", got)
	}
	line, inserted = insert("a %", "b\x00c")
	if got, err := command.Split(line, inserted...); !errors.Is(err, command.ErrNUL) {
		t.Errorf("with NUL: %q, %v", got, err)
	}
}

// FuzzSplit inserts any values into any line: the number of words, and the word of each value, depend on the
// line alone. A value without effect on splitting needs no mark, and joined words split into the same words.
func FuzzSplit(f *testing.F) {
	for _, template := range []string{"%", "a % b", "a%b", `"% y"`, "--f=%", "'%'%", `\%`, `"\%`, "a\\\n%", `a "%`, "% %", `'' %`, "\t%\n", "a\x00%", "é%", `%\`} {
		for _, value := range []string{"", "v", "a b", "it's", `"`, `\`, "\n", "'; rm -rf /", "$(id)", "`id`", "\x00", "\xff", "%", "~", "é"} {
			f.Add(template, value, "x")
		}
	}
	f.Fuzz(func(t *testing.T, template, first, second string) {
		line, inserted := insert(template, first, second)
		got, err := command.Split(line, inserted...)
		plain, plainErr := splitInserted(template, "v")
		if strings.Contains(line, "\x00") {
			if !errors.Is(err, command.ErrNUL) {
				t.Fatalf("%q with %q and %q gave %q, %v", template, first, second, got, err)
			}
			return
		}
		if (err == nil) != (plainErr == nil) && !errors.Is(err, command.ErrNoProgram) || err == nil && len(got) != len(plain) {
			t.Fatalf("%q with %q and %q gave %q, %v; with v %q, %v", template, first, second, got, err, plain, plainErr)
		}
		if err != nil {
			return
		}
		if again, err := command.Split(command.Join(got)); err != nil || !slices.Equal(again, got) {
			t.Fatalf("%q joined is %q, split %q, %v", got, command.Join(got), again, err)
		}
		if unmarked, err := command.Split(line); !command.AffectsSplit(first) && !command.AffectsSplit(second) && (err != nil || !slices.Equal(unmarked, got)) {
			t.Fatalf("%q is %q, %v, and %q with marks", line, unmarked, err, got)
		}
	})
}

func splitInserted(template string, values ...string) ([]string, error) {
	line, inserted := insert(template, values...)

	return command.Split(line, inserted...)
}
