package file_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// base gives valid properties with some replaced; nil takes one out.
func base(more typetest.Properties) typetest.Properties {
	p := typetest.Properties{"name": "/etc/motd", "owner": "root", "group": "root", "mode": "0644"}
	for key, value := range more {
		p[key] = value
		if value == nil {
			delete(p, key)
		}
	}

	return p
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		properties typetest.Properties
		// problems are parts of the messages and hints, in any order; none means valid.
		problems []string
	}{
		"valid":                        {properties: base(nil)},
		"directory":                    {properties: base(typetest.Properties{"ensure": "directory"})},
		"absent alone":                 {properties: typetest.Properties{"name": "/x", "ensure": "absent"}},
		"absent with all":              {properties: base(typetest.Properties{"ensure": "absent", "content": "x", "force": true})},
		"numbers as accounts":          {properties: base(typetest.Properties{"owner": "0123", "group": 0})},
		"largest number":               {properties: base(typetest.Properties{"owner": "4294967294"})},
		"root directory":               {properties: base(typetest.Properties{"name": "/", "ensure": "directory"})},
		"both words for content":       {properties: base(typetest.Properties{"content": "a", "contents": "b"}), problems: []string{"`content` is set twice"}},
		"relative":                     {properties: base(typetest.Properties{"name": "etc/motd"}), problems: []string{`file path must be absolute: "etc/motd"`}},
		"dots":                         {properties: base(typetest.Properties{"name": "/etc/../motd"}), problems: []string{`file path must be clean, without . or .. or a / too many: "/etc/../motd" (write it as /motd)`}},
		"slash at the end":             {properties: base(typetest.Properties{"name": "/etc/app/"}), problems: []string{`"/etc/app/" (write it as /etc/app)`}},
		"two slashes":                  {properties: base(typetest.Properties{"name": "//etc"}), problems: []string{"must be clean"}},
		"relative and dots":            {properties: base(typetest.Properties{"name": "./etc"}), problems: []string{"must be absolute", "must be clean"}},
		"NUL in the path":              {properties: base(typetest.Properties{"name": "/a\x00b"}), problems: []string{"file path must not contain a NUL byte"}},
		"control character in a path":  {properties: base(typetest.Properties{"name": "/a\nb"}), problems: []string{`file path must not contain control characters: "/a\nb"`}},
		"path that is no text":         {properties: base(typetest.Properties{"name": "/a\xff"}), problems: []string{`m.yaml:3: the name is not UTF-8, and no report could tell it from others: "/a\xff"`}},
		"source that is no text":       {properties: base(typetest.Properties{"source": "a\xff"}), problems: []string{`source must be UTF-8: "a\xff"`}},
		"empty source":                 {properties: base(typetest.Properties{"source": ""}), problems: []string{"`source` is empty (leave it out, or set it to null)"}},
		"empty source of a directory":  {properties: base(typetest.Properties{"source": "", "ensure": "directory"}), problems: []string{"`source` is empty"}},
		"mode of a decimal number":     {properties: base(typetest.Properties{"mode": "493"}), problems: []string{"invalid mode \"493\": it is not octal (493 is 0755 in decimal: write \"0755\")"}},
		"max_size without a source":    {properties: base(typetest.Properties{"content": "x", "max_size": "1MB"}), problems: []string{"`max_size` is only for a source (remove it, or set source)"}},
		"max_size of a directory":      {properties: base(typetest.Properties{"ensure": "directory", "max_size": "1MB"}), problems: []string{"a directory has no `max_size`"}},
		"max_size without a number":    {properties: base(typetest.Properties{"source": "x", "max_size": "much"}), problems: []string{"invalid size \"much\""}},
		"no source":                    {properties: base(typetest.Properties{"source": nil, "content": "x"})},
		"NUL in the source":            {properties: base(typetest.Properties{"source": "a\x00b"}), problems: []string{"source must not contain a NUL byte"}},
		"no ensure of this type":       {properties: base(typetest.Properties{"ensure": "link"}), problems: []string{"invalid ensure \"link\" (a link is a resource of the type `link`; one of present, absent, directory)"}},
		"no owner":                     {properties: base(typetest.Properties{"owner": nil}), problems: []string{"`owner` is required unless ensure is absent"}},
		"empty group":                  {properties: base(typetest.Properties{"group": ""}), problems: []string{"`group` is required unless ensure is absent"}},
		"blank group":                  {properties: base(typetest.Properties{"group": " "}), problems: []string{"`group` is required"}},
		"no mode":                      {properties: base(typetest.Properties{"mode": nil}), problems: []string{"`mode` is required unless ensure is absent"}},
		"directory without anything":   {properties: typetest.Properties{"name": "/x", "ensure": "directory"}, problems: []string{"`owner` is", "`group` is", "`mode` is"}},
		"owner that means unchanged":   {properties: base(typetest.Properties{"owner": "4294967295"}), problems: []string{`invalid owner "4294967295" (numbers go up to 4294967294)`}},
		"group out of range":           {properties: base(typetest.Properties{"group": "99999999999999999999"}), problems: []string{"invalid group"}},
		"mode with a digit too high":   {properties: base(typetest.Properties{"mode": "0888"}), problems: []string{`invalid mode "0888": it is not octal`}},
		"mode with sticky":             {properties: base(typetest.Properties{"mode": "1777"}), problems: []string{`invalid mode "1777": it exceeds 0777`}},
		"mode out of range":            {properties: base(typetest.Properties{"mode": "77777777777777777777777"}), problems: []string{"it exceeds 0777"}},
		"mode in letters":              {properties: base(typetest.Properties{"mode": "rw-r--r--"}), problems: []string{`invalid mode "rw-r--r--": it is not octal`}},
		"mode with a sign":             {properties: base(typetest.Properties{"mode": "+644"}), problems: []string{"it is not octal"}},
		"mode with a blank":            {properties: base(typetest.Properties{"mode": "0644 "}), problems: []string{"it is not octal"}},
		"mode in hexadecimal":          {properties: base(typetest.Properties{"mode": "0x1ff"}), problems: []string{"it is not octal"}},
		"mode with an underscore":      {properties: base(typetest.Properties{"mode": "06_44"}), problems: []string{"it is not octal"}},
		"mode with two prefixes":       {properties: base(typetest.Properties{"mode": "0o0o644"}), problems: []string{"it is not octal"}},
		"empty mode":                   {properties: base(typetest.Properties{"mode": ""}), problems: []string{"`mode` is required"}},
		"mode of a prefix":             {properties: base(typetest.Properties{"mode": "0o"}), problems: []string{"it is not octal"}},
		"mode with a bad absent":       {properties: typetest.Properties{"name": "/x", "ensure": "absent", "mode": "9"}, problems: []string{"it is not octal"}},
		"content and source":           {properties: base(typetest.Properties{"content": "", "source": "f"}), problems: []string{"`content` and `source` exclude each other"}},
		"content of a directory":       {properties: base(typetest.Properties{"ensure": "directory", "content": ""}), problems: []string{"m.yaml:3: a directory has no `content` (remove it, or use ensure: present)"}},
		"source of a directory":        {properties: base(typetest.Properties{"ensure": "directory", "source": "f"}), problems: []string{"m.yaml:3: a directory has no `source` (remove it, or use ensure: present)"}},
		"validate":                     {properties: base(typetest.Properties{"content": "x", "validate": "nginx -tc {}"})},
		"validate within a word":       {properties: base(typetest.Properties{"source": "f", "validate": "check --file={}"})},
		"validate, absent":             {properties: base(typetest.Properties{"ensure": "absent", "validate": "nginx -tc {}"})},
		"validate without {}":          {properties: base(typetest.Properties{"content": "x", "validate": "nginx -t"}), problems: []string{"`validate` does not name the new file (put {} where its path belongs, for example visudo -cf {})"}},
		"validate that is the file":    {properties: base(typetest.Properties{"content": "x", "validate": "{} -t"}), problems: []string{"`validate` does not name the new file"}},
		"validate with an open quote":  {properties: base(typetest.Properties{"content": "x", "validate": "nginx '{}"}), problems: []string{"`validate` cannot be split into words: Unterminated single-quoted string (close the quote)"}},
		"validate that is empty":       {properties: base(typetest.Properties{"content": "x", "validate": ""}), problems: []string{"`validate` is empty"}},
		"validate that is blank":       {properties: base(typetest.Properties{"content": "x", "validate": " "}), problems: []string{"`validate` names no program"}},
		"validate with NUL":            {properties: base(typetest.Properties{"content": "x", "validate": "a {}\x00"}), problems: []string{"`validate` must not contain a NUL byte"}},
		"capabilities without content": {properties: base(typetest.Properties{"drop_capabilities": true}), problems: []string{"`drop_capabilities` requires managed content (set content or source)"}},
		"validate without content":     {properties: base(typetest.Properties{"validate": "nginx -tc {}"}), problems: []string{"`validate` has no content to validate (set content or source)"}},
		"validate of a directory":      {properties: base(typetest.Properties{"ensure": "directory", "validate": "nginx -tc {}"}), problems: []string{"a directory has no `validate` (remove it, or use ensure: present)"}},
		"force with present":           {properties: base(typetest.Properties{"force": true}), problems: []string{"`force` is only valid with ensure: absent"}},
		"force with directory":         {properties: base(typetest.Properties{"ensure": "directory", "force": true}), problems: []string{"`force` is only valid with ensure: absent"}},
		"force with the root":          {properties: typetest.Properties{"name": "/", "ensure": "absent", "force": true}, problems: []string{"`force` cannot be used with the root directory"}},
		"force with the root, hidden":  {properties: typetest.Properties{"name": "/a/..", "ensure": "absent", "force": true}, problems: []string{"must be clean", "cannot be used with the root directory"}},
		"all at once": {
			properties: typetest.Properties{"name": "a/", "content": "a", "source": "b", "force": true, "mode": "9", "ownr": "x"},
			problems:   []string{"absolute", "clean", "exclude", "force", "`owner`", "`group`", "octal", "unknown property `ownr`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := resource.Decode(fileType(), typetest.Value(c.properties), model.Position{File: "m.yaml", Line: 3})
			if len(problems) != len(c.problems) {
				t.Errorf("%d problems, not %d:\n%v", len(problems), len(c.problems), problems)
			}
			for _, part := range c.problems {
				if !slices.ContainsFunc(problems, func(p model.Problem) bool { return strings.Contains(p.Error(), part) }) {
					t.Errorf("no problem says %q:\n%v", part, problems)
				}
			}
			if err := problems.Err(); err != nil && !errors.Is(err, model.ErrResourceInvalid) {
				t.Errorf("%v is not ErrResourceInvalid", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	content := "x"
	for _, c := range []struct {
		spec file.Spec
		want []string
	}{
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Content: &content}},
		{spec: file.Spec{Common: model.Common{Ensure: "absent"}, Owner: "root", Group: "root", Mode: "0644"}},
		{spec: file.Spec{Common: model.Common{Ensure: "absent"}, Content: &content}, want: []string{"content"}},
		{spec: file.Spec{Common: model.Common{Ensure: "absent"}, Source: "f"}, want: []string{"source"}},
		{spec: file.Spec{Common: model.Common{Ensure: "absent"}, Source: "f", Validator: "true {}"}, want: []string{"source", "validate"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "420"}, want: []string{"mode"}},
		{spec: file.Spec{Common: model.Common{Ensure: "directory"}, Mode: "365"}, want: []string{"mode"}},
		{spec: file.Spec{Common: model.Common{Ensure: "absent"}, Mode: "420"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "0420"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "0o420"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "644"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "600"}},
		{spec: file.Spec{Common: model.Common{Ensure: "present"}, Mode: "440"}},
	} {
		var got []string
		for _, p := range c.spec.Warnings() {
			got = append(got, p.Property)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v warns about %v, not %v", c.spec, got, c.want)
		}
	}
}

// TestModeOfADecimalNumber has the warning name both readings.
func TestModeOfADecimalNumber(t *testing.T) {
	warnings := (&file.Spec{Common: model.Common{Ensure: "present"}, Mode: "420"}).Warnings()
	if want := `mode "420" is octal, 0420, and 420 in decimal is 0644 (write "0644" if you mean that, "0420" else)`; warnings.Err() == nil || warnings.Err().Error() != want {
		t.Errorf("%v, not %s", warnings.Err(), want)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("/etc/motd", "root", "0644", "f", false)
	f.Add("/", "0", "0o777", "", true)
	f.Add("../\x00", "4294967295", "0O", "\x00", true)
	f.Fuzz(func(t *testing.T, name, account, mode, source string, force bool) {
		spec := &file.Spec{Common: model.Common{Name: name, Ensure: "absent"}, Owner: account, Group: account, Mode: mode, Source: source, Force: force}
		if !force {
			spec.Ensure = "present"
		}
		if len(spec.Validate()) > 0 {
			return
		}
		if name == "" || name[0] != '/' || strings.ContainsRune(name+source, 0) || strings.Contains(name+"/", "/../") || (force && name == "/") {
			t.Errorf("accepted: %+v", spec)
		}
	})
}
