package template_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/template"
)

func judgedData() any {
	pw := model.NewSecret("hunter2")

	return map[string]any{"name": "app", "pw": pw, "db": map[string]any{"user": "u", "pw": pw}, "words": []any{"a", pw}, "hosts": []any{"x"}, "app": map[string]any{"port": 1}}
}

// TestJudge covers templates that use secrets of the data in different ways.
func TestJudge(t *testing.T) {
	const unused, printed, mixed = template.Unused, template.Printed, template.Mixed
	for text, want := range map[string]template.Use{
		"no action, Data.pw": unused,
		"{{ .Data.name }} {{ $.Data.db.user }} {{ .data.app }}{{ .Data.app.port | printf \"%d\" }}": unused,
		"{{ range .Data.hosts }}{{ . }}{{ end }}":                                                   unused,
		"{{ with .Data.app }}{{ . }}{{ .pw }}{{ end }}":                                             unused,
		"{{ index .Data.words 0 }} {{ get .Data \"name\" }} {{ get .Data.db \"user\" }}":            unused,
		"{{ $x := .Data.app }}{{ $x.pw }}":                                                          unused,
		"{{ render \"a\" . }}":                                                                      unused,
		"{{ template \"a\" . }}{{ define \"a\" }}{{ .Data.name }}{{ end }}":                         unused,
		"{{/* .Data.pw */}}":                                                                        unused,
		"{{ .Facts.Data.name }} {{ \"Data.pw\" }}":                                                  unused,
		"{{ .Data.pw }}":                                  printed,
		"{{ $.Data.pw }}":                                 mixed,
		"{{ .Data.pw | upper }}":                          mixed,
		"{{ if .Data.pw }}a{{ end }}":                     mixed,
		"{{ if true }}{{ else if .data.pw }}{{ end }}":    mixed,
		"{{ toJson .Data }}":                              mixed,
		"{{ .Data }}":                                     printed,
		"{{ .Data.db }}":                                  printed,
		"{{ range .Data.words }}{{ . }}{{ end }}":         mixed,
		"{{ with .Data.db }}{{ .user }}{{ end }}":         mixed,
		"{{ $d := .Data }}{{ $d.pw }}":                    mixed,
		"{{ index .Data \"pw\" }}":                        mixed,
		"{{ index .Data.words 1 }}":                       mixed,
		"{{ index .Data.words 0x1 }}":                     mixed,
		"{{ index .Data (print \"p\" \"w\") }}":           mixed,
		"{{ (.Data).pw }}":                                mixed,
		"{{ . }}":                                         mixed,
		"{{ toJson $ }}":                                  mixed,
		"{{ $x := . }}{{ $x.Data.name }}":                 mixed,
		"{{ with .Facts }}{{ $ }}{{ end }}":               mixed,
		"{{ with .Data.none }}{{ else }}{{ . }}{{ end }}": mixed,
		"{{ range .Data.hosts }}{{ block \"b\" $ }}{{ . }}{{ end }}{{ end }}": mixed,
		"{{ template \"a\" toJson . }}":                                       mixed,
		"{{ template \"a\" (dict \"x\" .) }}":                                 mixed,
		"{{ define \"a\" }}{{ . }}{{ end }}":                                  mixed,
	} {
		j := template.Judge{Data: judgedData()}
		if j.Text(text, "{{", "}}", false); j.Found != want {
			t.Errorf("%s: %d, want %d", text, j.Found, want)
		}
		if none := (template.Judge{Data: map[string]any{"pw": "x"}}); true {
			if none.Text(text, "{{", "}}", false); none.Found != unused {
				t.Errorf("%s: %d without a secret", text, none.Found)
			}
		}
	}
	for text, want := range map[string]template.Use{
		"[[ Data.name ]] [[ .Data.db.user ]] [[ data[\"name\"] ]] [[ Data.words[0] ]]": unused,
		"[[ range Data.hosts ]][[ . ]][[ end ]]":                                       unused,
		"{* [[ Data.pw ]] *}":                                                          unused,
		"[[ render(\"a\", .) ]]":                                                       unused,
		"[[ include \"a.jet\" . ]]":                                                    unused,
		"[[ lookup(\"data.name\") ]] [[ lookup(\"data.db.user\", \"x\") ]] [[ lookup(\"facts.os\") ]]": unused,
		"[[ .secret ]] [[ Facts.lookup ]]":               unused,
		"[[ Data.pw ]]":                                  printed,
		"[[- .Data.db.pw -]]":                            printed,
		"[[ Data[\"pw\"] ]]":                             printed,
		"[[ secret(\"x\") ]]":                            printed,
		"[[ lookup(\"data.pw\") ]]":                      printed,
		"[[ lookup(\"data.users.#.pw\") ]]":              unused,
		"[[ lookup(\"data.#.pw\") ]]":                    printed,
		"[[ lookup(\"data.p\" + \"w\") ]]":               mixed,
		"[[ lookup(Facts.x) ]]":                          mixed,
		"[[ \"data.pw\" | lookup ]]":                     mixed,
		"[[ upper(secret(\"x\")) ]]":                     mixed,
		"[[ x := Data.pw ]]":                             mixed,
		"[[ Data[Facts.key] ]]":                          mixed,
		"[[ Data.pw[0:3] ]]":                             mixed,
		"[[ dump() ]]":                                   mixed,
		"[[ . ]]":                                        mixed,
		"[[ range i, v := Data.hosts ]][[ . ]][[ end ]]": mixed,
		"[[ yield b(x=.) ]]":                             mixed,
	} {
		j := template.Judge{Data: judgedData(), Strict: true}
		if j.Text(text, "[[", "]]", true); j.Found != want {
			t.Errorf("%s: %d, want %d", text, j.Found, want)
		}
	}
}
