package exec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		properties typetest.Properties
		problems   []string
	}{
		"a name":                        {properties: typetest.Properties{"name": "echo 'hello world'"}},
		"everything":                    {properties: typetest.Properties{"name": "x", "command": "make", "cwd": "/", "environment": []string{"A=b=c"}, "path": "/usr/bin:/bin", "returns": []int{0, 255}, "creates": "/x", "refresh_only": true, "log_output": true, "onlyif": "true", "unless": "false"}},
		"name that is no command":       {properties: typetest.Properties{"name": "it's only a name", "command": "true"}},
		"argv":                          {properties: typetest.Properties{"name": "it's", "argv": []string{"true", "", "'"}, "onlyif": "true"}},
		"argv and all else":             {properties: typetest.Properties{"name": "x", "argv": []string{"", "a\x00"}, "command": "'", "provider": "shell"}, problems: []string{"argv and command are both set (keep one of them)", "an item of argv must not contain a NUL byte"}},
		"name for a shell":              {properties: typetest.Properties{"name": "echo it's", "provider": "shell"}},
		"name with an open quote":       {properties: typetest.Properties{"name": "echo 'hello"}, problems: []string{"name cannot be split into words: Unterminated single-quoted string (close the quote, or set provider: shell)"}},
		"command with an open quote":    {properties: typetest.Properties{"name": "x", "command": `echo "hello`}, problems: []string{"command cannot be split into words: Unterminated double-quoted string"}},
		"guards with open quotes":       {properties: typetest.Properties{"name": "x", "onlyif": "'", "unless": `\`}, problems: []string{"onlyif cannot be split", "unless cannot be split"}},
		"name of blanks":                {properties: typetest.Properties{"name": " \t"}, problems: []string{"the exec needs a name"}},
		"command of blanks":             {properties: typetest.Properties{"name": "x", "command": "  "}, problems: []string{"no command specified"}},
		"shell command of blanks":       {properties: typetest.Properties{"name": "x", "command": "\n", "provider": "shell"}, problems: []string{"no command specified"}},
		"command without a program":     {properties: typetest.Properties{"name": "x", "command": "'' a"}, problems: []string{"command names no program (write the program first)"}},
		"command of an empty word":      {properties: typetest.Properties{"name": "x", "command": "''"}, problems: []string{"command names no program"}},
		"empty values":                  {properties: typetest.Properties{"name": "x", "command": "", "cwd": "", "path": "", "creates": "", "onlyif": "", "unless": ""}, problems: []string{"`command` is empty (leave it out, or set it to null)", "`cwd` is empty", "`path` is empty", "`creates` is empty", "`onlyif` is empty", "`unless` is empty"}},
		"values that are not set":       {properties: typetest.Properties{"name": "x", "command": nil, "cwd": nil, "path": nil, "creates": nil, "onlyif": nil, "unless": nil}},
		"name that is no text":          {properties: typetest.Properties{"name": "echo \xff"}, problems: []string{"the name is not UTF-8"}},
		"alias that is no text":         {properties: typetest.Properties{"name": "x", "alias": "\xff"}, problems: []string{"the alias is not UTF-8"}},
		"command with a NUL":            {properties: typetest.Properties{"name": "x", "command": "a\x00"}, problems: []string{"must not contain a NUL byte"}},
		"relative cwd":                  {properties: typetest.Properties{"name": "x", "cwd": "opt"}, problems: []string{`cwd must be an absolute path: "opt"`}},
		"relative creates":              {properties: typetest.Properties{"name": "x", "creates": "opt"}, problems: []string{`creates must be an absolute path: "opt"`}},
		"relative path":                 {properties: typetest.Properties{"name": "x", "path": "/bin:bin"}, problems: []string{`path has a directory that is not absolute: "bin"`}},
		"relative removes":              {properties: typetest.Properties{"name": "x", "removes": "opt"}, problems: []string{`removes must be an absolute path: "opt"`}},
		"user, group, umask and stdin":  {properties: typetest.Properties{"name": "x", "user": "app", "group": "33", "umask": "0o77", "stdin": ""}},
		"user and group, wrong":         {properties: typetest.Properties{"name": "x", "user": "app:web", "group": "4294967295"}, problems: []string{`invalid user "app:web" (write one name or number)`, `invalid group "4294967295" (numbers go up to 4294967294)`}},
		"user and group, empty":         {properties: typetest.Properties{"name": "x", "user": "", "group": " "}, problems: []string{"`user` is empty (leave it out, or set it to null)", "`group` is empty"}},
		"umask that is no mode":         {properties: typetest.Properties{"name": "x", "umask": "rwx"}, problems: []string{`invalid umask "rwx" (write it in octal, at most 0777, for example "0027")`}},
		"umask that is too large":       {properties: typetest.Properties{"name": "x", "umask": "1022"}, problems: []string{`invalid umask "1022"`}},
		"stdin that is too large":       {properties: typetest.Properties{"name": "x", "stdin": strings.Repeat("x", 16<<20+1)}, problems: []string{"the limit is 16 MiB (write it to a file, and read this in the command)"}},
		"empty path entry":              {properties: typetest.Properties{"name": "x", "path": "/bin:"}, problems: []string{`path has a directory that is not absolute: ""`}},
		"environment without =":         {properties: typetest.Properties{"name": "x", "environment": []string{"A=b", "SECRET"}}, problems: []string{"environment entry 2 has no ="}},
		"environment without a key":     {properties: typetest.Properties{"name": "x", "environment": []string{"=b"}}, problems: []string{"environment entry 1 has an empty key"}},
		"environment without a value":   {properties: typetest.Properties{"name": "x", "environment": []string{"A="}}},
		"environment with a NUL":        {properties: typetest.Properties{"name": "x", "environment": []string{"A=b\x00"}}, problems: []string{"contains a NUL byte"}},
		"environment that is no list":   {properties: typetest.Properties{"name": "x", "environment": "A=b"}, problems: []string{"`environment` must be a list"}},
		"exit codes that do not exist":  {properties: typetest.Properties{"name": "x", "returns": []int{-1, 256}}, problems: []string{"invalid exit code -1", "invalid exit code 256"}},
		"a timeout without its unit":    {properties: typetest.Properties{"name": "x", "timeout": "30"}, problems: []string{"write it with its unit"}},
		"a subscription to nothing":     {properties: typetest.Properties{"name": "x", "subscribe": []string{"file"}}, problems: []string{"write it as type#name"}},
		"ensure: absent":                {properties: typetest.Properties{"name": "x", "ensure": "absent"}, problems: []string{`invalid ensure "absent"`}},
		"refresh_only in both spelling": {properties: typetest.Properties{"name": "x", "refresh_only": true, "refreshonly": true}, problems: []string{"`refresh_only` is set twice"}},
		"logoutput in both spelling":    {properties: typetest.Properties{"name": "x", "logoutput": true, "log_output": true}, problems: []string{"`logoutput` is set twice"}},
		"all at once":                   {properties: typetest.Properties{"name": "'", "cwd": "a", "creates": "b", "path": "c", "environment": []string{"d"}, "returns": []int{999}}, problems: []string{"name cannot", "cwd", "creates", "path has", "entry 1", "999"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := resource.Decode(execType(), typetest.Value(c.properties), model.Position{})
			if len(problems) != len(c.problems) {
				t.Errorf("%d problems, not %d:\n%v", len(problems), len(c.problems), problems)
			}
			for _, part := range c.problems {
				if !slices.ContainsFunc(problems, func(p model.Problem) bool { return strings.Contains(p.Error(), part) }) {
					t.Errorf("no problem says %q:\n%v", part, problems)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	common := model.Common{Name: "x"}
	for _, c := range []struct {
		spec  exec.Spec
		warns bool
	}{
		{spec: exec.Spec{Common: common}, warns: true},
		{spec: exec.Spec{Common: common, Returns: []int{1}}, warns: true},
		{spec: exec.Spec{Common: common, Creates: "/x"}},
		{spec: exec.Spec{Common: common, Removes: "/x"}},
		{spec: exec.Spec{Common: common, RefreshOnly: true}},
		{spec: exec.Spec{Common: common, OnlyIf: "true"}},
		{spec: exec.Spec{Common: common, Unless: "true"}},
	} {
		warnings := c.spec.Warnings()
		if (len(warnings) == 1 && strings.Contains(warnings[0].Error(), "x runs every time")) != c.warns {
			t.Errorf("%+v warns: %v", c.spec, warnings)
		}
	}
}

func TestWarningsOfPatterns(t *testing.T) {
	for path, warns := range map[string]bool{"/x*": true, "/x/?": true, "/x/[ab]": true, "/x y{a,b}$~": false} {
		creates, removes := exec.Spec{Creates: path}, exec.Spec{Removes: path}
		for property, spec := range map[string]exec.Spec{"creates": creates, "removes": removes} {
			warnings := spec.Warnings()
			if (len(warnings) == 1 && warnings[0].Property == property && strings.Contains(warnings[0].Error(), "a pattern is not expanded: "+path)) != warns {
				t.Errorf("%s of %s: %v", property, path, warnings)
			}
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("echo 'a b'", "A=b", "/bin:/usr/bin", "posix")
	f.Add("'", "=", ":", "shell")
	f.Add("\x00", "A\x00=b", "", "")
	f.Fuzz(func(t *testing.T, text, environment, path, provider string) {
		spec := &exec.Spec{Common: model.Common{Name: "x", Provider: provider}, Command: text, Environment: []string{environment}, Path: path}
		if len(spec.Validate()) > 0 {
			return
		}
		key, _, found := strings.Cut(environment, "=")
		if key == "" || !found || strings.ContainsRune(text+environment, 0) || strings.Contains(":"+path+":", "::") != (path == "") {
			t.Errorf("accepted: %+v", spec)
		}
		if words, err := command.Split(spec.Command); provider != "shell" && text != "" && (err != nil || words[0] == "") {
			t.Errorf("accepted: %q", text)
		}
	})
}
