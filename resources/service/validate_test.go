package service_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/resources/service/systemd"
	"github.com/musterfleet/muster/testing/typetest"
)

func serviceType() *resource.Type { return service.New(systemd.New("/")) }

// TestValidate covers the tables of names, and the values of ensure and enable.
func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 247)
	for name, c := range map[string]struct {
		properties typetest.Properties
		problem    string
	}{
		"a name":                   {properties: typetest.Properties{"name": "httpd"}},
		"with a suffix":            {properties: typetest.Properties{"name": "nginx.service"}},
		"every character":          {properties: typetest.Properties{"name": "aZ09._+:~-"}},
		"hyphen and underscore":    {properties: typetest.Properties{"name": "my-app_v2"}},
		"everything":               {properties: typetest.Properties{"name": "x", "ensure": "stopped", "enable": false, "provider": "systemd"}},
		"running":                  {properties: typetest.Properties{"name": "x", "ensure": "running", "enable": true}},
		"longest":                  {properties: typetest.Properties{"name": long}},
		"an instance":              {properties: typetest.Properties{"name": "app@instance"}},
		"an instance, in full":     {properties: typetest.Properties{"name": "app@instance.service"}},
		"a template":               {properties: typetest.Properties{"name": "app@"}, problem: `invalid service name "app@" (name an instance of a template: name@instance)`},
		"a template, in full":      {properties: typetest.Properties{"name": "app@.service"}, problem: "invalid service name"},
		"no template":              {properties: typetest.Properties{"name": "@x"}, problem: "invalid service name"},
		"an @ in the instance":     {properties: typetest.Properties{"name": "a@b@c"}},
		"an escape":                {properties: typetest.Properties{"name": `srv-my\x2ddata.mount`}},
		"an escape, in a service":  {properties: typetest.Properties{"name": `app@a\x20b`}},
		"the root mount":           {properties: typetest.Properties{"name": "-.mount"}},
		"the root slice":           {properties: typetest.Properties{"name": "-.slice"}},
		"a hyphen":                 {properties: typetest.Properties{"name": "-"}, problem: "would be taken for an option"},
		"masked":                   {properties: typetest.Properties{"name": "a", "ensure": "stopped", "enable": false, "masked": true}},
		"masked, and it runs":      {properties: typetest.Properties{"name": "a", "masked": true}, problem: "a masked service can neither run nor start (set ensure: stopped, and leave out enable)"},
		"masked, and it starts":    {properties: typetest.Properties{"name": "a", "ensure": "stopped", "masked": true, "enable": true}, problem: "a masked service can neither run nor start"},
		"unmasked":                 {properties: typetest.Properties{"name": "a", "masked": false, "refresh": "reload-or-restart"}},
		"another refresh":          {properties: typetest.Properties{"name": "a", "refresh": "start"}, problem: "refresh"},
		"a command":                {properties: typetest.Properties{"name": "app; rm -rf /"}, problem: `service name contains dangerous characters: "app; rm -rf /" (use letters,`},
		"a pipe":                   {properties: typetest.Properties{"name": "a|b"}, problem: "dangerous characters"},
		"an ampersand":             {properties: typetest.Properties{"name": "a&b"}, problem: "dangerous characters"},
		"a dollar":                 {properties: typetest.Properties{"name": "$a"}, problem: "dangerous characters"},
		"a pattern":                {properties: typetest.Properties{"name": "a*"}, problem: "dangerous characters"},
		"a blank":                  {properties: typetest.Properties{"name": "a b"}, problem: "dangerous characters"},
		"a new line":               {properties: typetest.Properties{"name": "a\n"}, problem: "dangerous characters"},
		"a path":                   {properties: typetest.Properties{"name": "../a"}, problem: "dangerous characters"},
		"other letters":            {properties: typetest.Properties{"name": "é"}, problem: "dangerous characters"},
		"an option":                {properties: typetest.Properties{"name": "--help"}, problem: "would be taken for an option"},
		"a directory":              {properties: typetest.Properties{"name": ".."}, problem: "would be taken for an option or a path"},
		"too long":                 {properties: typetest.Properties{"name": long + "a"}, problem: "service name is too long: 248 bytes"},
		"too long once escaped":    {properties: typetest.Properties{"name": strings.Repeat("+", 62)}, problem: "service name is too long: 62 bytes"},
		"no name":                  {properties: typetest.Properties{"name": ""}, problem: "needs a name"},
		"another ensure":           {properties: typetest.Properties{"name": "x", "ensure": "present"}, problem: `invalid ensure "present" (one of running, stopped)`},
		"ensure of other tools":    {properties: typetest.Properties{"name": "x", "ensure": "started"}, problem: "invalid ensure \"started\" (did you mean `running`? one of running, stopped)"},
		"a restart":                {properties: typetest.Properties{"name": "x", "ensure": "restarted"}, problem: `invalid ensure "restarted" (that is no state: a service that subscribes to a resource is restarted when this changes; to do it once write muster fleet exec … -- systemctl restart; one of running, stopped)`},
		"enable that is no answer": {properties: typetest.Properties{"name": "x", "enable": "maybe"}, problem: "enable"},
	} {
		t.Run(name, func(t *testing.T) {
			r, problems := resource.Decode(serviceType(), typetest.Value(c.properties), model.Position{})
			switch {
			case c.problem == "" && len(problems) > 0:
				t.Error(problems)
			case c.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.problem)):
				t.Errorf("%v, without %q", problems, c.problem)
			case r != nil && c.properties["ensure"] == nil && r.Meta().Ensure != "running":
				t.Errorf("the default of ensure is %q", r.Meta().Ensure)
			}
		})
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("nginx.service")
	f.Add("app@x")
	f.Add("-a;\x00b")
	f.Fuzz(func(t *testing.T, name string) {
		spec := &service.Spec{Common: model.Common{Name: name}}
		if len(spec.Validate()) > 0 {
			return
		}
		if strings.ContainsAny(name, "/;|&$ \t\n*?[]'\"\x00") || strings.HasPrefix(name, "-") && name != "-.mount" && name != "-.slice" || len(service.UnitName(name)) > 255 {
			t.Errorf("accepted: %q", name)
		}
	})
}

func TestUnitName(t *testing.T) {
	for name, want := range map[string]string{
		"nginx": "nginx.service", "nginx.service": "nginx.service", "dbus.socket": "dbus.socket", "x.timer": "x.timer", "a.b": "a.b.service",
		"g++~1": `g\x2b\x2b\x7e1.service`,
	} {
		if got := service.UnitName(name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}

// TestCanonicalName is the same for two names of one service.
func TestCanonicalName(t *testing.T) {
	for name, want := range map[string]string{"ma": "ma.service", "ma.service": "ma.service", "ma.timer": "ma.timer"} {
		if got := (&service.Spec{Common: model.Common{Name: name}}).CanonicalName(); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}

func TestRelations(t *testing.T) {
	for name, want := range map[string][]string{
		"web":         {"path:/etc/systemd/system/web.service", "path:/usr/lib/systemd/system/web.service", "path:/etc/systemd/system/web.service.d", "path:/etc/init.d/web", "package:web"},
		"web.service": {"path:/lib/systemd/system/web.service", "path:/run/systemd/system/web.service", "path:/etc/init.d/web", "package:web"},
		"web.socket":  {"path:/etc/systemd/system/web.socket", "path:/etc/systemd/system/web.service", "path:/usr/lib/systemd/system/web.service.d", "path:/etc/init.d/web", "package:web"},
		"web.timer":   {"path:/etc/systemd/system/web.timer.d", "path:/run/systemd/system/web.service", "package:web"},
		"web.path":    {"path:/lib/systemd/system/web.path", "path:/lib/systemd/system/web.service", "package:web"},
		"g++":         {`path:/etc/systemd/system/g\x2b\x2b.service`, "path:/etc/init.d/g++", "package:g++"},
		"web@x":       {"path:/etc/systemd/system/web@x.service", "path:/etc/systemd/system/web@.service", "path:/lib/systemd/system/web@.service.d", "package:web"},
		"web@x.timer": {"path:/etc/systemd/system/web@.timer", "package:web"},
		"web.target":  {"path:/etc/systemd/system/web.target", "package:web"},
	} {
		got := serviceType().Relations(&service.Spec{Common: model.Common{Name: name}})
		for _, need := range want {
			if !slices.Contains(got.Needs, resource.Need{What: need}) {
				t.Errorf("%s does not need %s: %v", name, need, got.Needs)
			}
		}
		started := "path:/etc/systemd/system/web.service"
		if strings.HasSuffix(name, ".target") && slices.Contains(got.Needs, resource.Need{What: started}) {
			t.Errorf("%s needs %s: %v", name, started, got.Needs)
		}
		if len(got.Provides) > 0 {
			t.Errorf("%s provides %v", name, got.Provides)
		}
	}
}
