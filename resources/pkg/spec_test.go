package pkg_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/pkg/dnf"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

func packageType() *resource.Type { return pkg.New(apt.New(), dnf.New()) }

// TestValidate covers the tables of ensure values and of names, allowed and rejected.
func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		properties typetest.Properties
		problems   []string
	}{
		"only a name":                 {properties: typetest.Properties{"name": "vim"}},
		"present":                     {properties: typetest.Properties{"name": "vim", "ensure": "present"}},
		"absent":                      {properties: typetest.Properties{"name": "telnet", "ensure": "absent"}},
		"latest":                      {properties: typetest.Properties{"name": "vim", "ensure": "latest", "cache_max_age": "1h"}},
		"everything":                  {properties: typetest.Properties{"name": "vim", "ensure": "latest", "hold": true, "recommends": false, "target_release": "bookworm-backports"}},
		"purged":                      {properties: typetest.Properties{"name": "vim", "ensure": "purged", "hold": false}},
		"purged and held":             {properties: typetest.Properties{"name": "vim", "ensure": "purged", "hold": true}, problems: []string{"hold: true contradicts ensure: purged (leave it out)"}},
		"a release that is none":      {properties: typetest.Properties{"name": "vim", "target_release": "-x"}, problems: []string{`invalid release "-x"`}},
		"a version":                   {properties: typetest.Properties{"name": "nginx", "ensure": "1.24.0-1.el9"}},
		"a version with everything":   {properties: typetest.Properties{"name": "nginx", "ensure": "2:1.0.0+git-20190109~rc1^x-0ubuntu2"}},
		"a version as a number":       {properties: typetest.Properties{"name": "nginx", "ensure": 1.1}},
		"alphanumeric":                {properties: typetest.Properties{"name": "azAZ09"}},
		"period, underscore, plus":    {properties: typetest.Properties{"name": "g++_1.2"}},
		"colon, tilde, hyphen":        {properties: typetest.Properties{"name": "lib-a~b:i386"}},
		"shell metacharacters":        {properties: typetest.Properties{"name": "a;b"}, problems: []string{`invalid package name "a;b" (letters, digits`}},
		"a pipe":                      {properties: typetest.Properties{"name": "a|b"}, problems: []string{"invalid package name"}},
		"an ampersand":                {properties: typetest.Properties{"name": "a&b"}, problems: []string{"invalid package name"}},
		"a dollar":                    {properties: typetest.Properties{"name": "a$b"}, problems: []string{"invalid package name"}},
		"whitespace":                  {properties: typetest.Properties{"name": "a b"}, problems: []string{"invalid package name"}},
		"a newline":                   {properties: typetest.Properties{"name": "a\nb"}, problems: []string{"invalid package name"}},
		"a newline at the end":        {properties: typetest.Properties{"name": "a\n"}, problems: []string{"invalid package name"}},
		"a quote":                     {properties: typetest.Properties{"name": "a'b"}, problems: []string{"invalid package name"}},
		"a double quote":              {properties: typetest.Properties{"name": `a"b`}, problems: []string{"invalid package name"}},
		"a backtick":                  {properties: typetest.Properties{"name": "a`b"}, problems: []string{"invalid package name"}},
		"a path separator":            {properties: typetest.Properties{"name": "../a"}, problems: []string{"invalid package name"}},
		"an option":                   {properties: typetest.Properties{"name": "-y"}, problems: []string{`must not begin with "-"`}},
		"a pattern of apt":            {properties: typetest.Properties{"name": "~i"}, problems: []string{`must not begin with "~"`}},
		"a removal":                   {properties: typetest.Properties{"name": "vim-", "provider": "apt"}, problems: []string{"apt would remove \"vim\" (to remove a package set ensure: absent)"}},
		"a hyphen at the end for dnf": {properties: typetest.Properties{"name": "vim-", "provider": "dnf"}},
		"ensure that is no version":   {properties: typetest.Properties{"name": "vim", "ensure": "newest"}, problems: []string{`invalid ensure "newest" (present, absent, purged, latest or a version)`}},
		"ensure of other tools":       {properties: typetest.Properties{"name": "vim", "ensure": "installed"}, problems: []string{"invalid ensure \"installed\" (did you mean `present`? present, absent, purged, latest or a version)"}},
		"removal of other tools":      {properties: typetest.Properties{"name": "vim", "ensure": "removed"}, problems: []string{"invalid ensure \"removed\" (did you mean `absent`?"}},
		"ensure with a blank":         {properties: typetest.Properties{"name": "vim", "ensure": "1.0 -y"}, problems: []string{"invalid ensure"}},
		"ensure with a separator":     {properties: typetest.Properties{"name": "vim", "ensure": "1/bookworm"}, problems: []string{"invalid ensure"}},
		"ensure with a semicolon":     {properties: typetest.Properties{"name": "vim", "ensure": "1;reboot"}, problems: []string{"invalid ensure"}},
		"ensure with a glob":          {properties: typetest.Properties{"name": "vim", "ensure": "1.*"}, problems: []string{"invalid ensure"}},
		"ensure as an option":         {properties: typetest.Properties{"name": "vim", "ensure": "-1"}, problems: []string{"invalid ensure"}},
		"an age without its unit":     {properties: typetest.Properties{"name": "vim", "cache_max_age": "60"}, problems: []string{"write it with its unit"}},
		"both":                        {properties: typetest.Properties{"name": "a b", "ensure": "x y"}, problems: []string{"invalid package name", "invalid ensure"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := resource.Decode(packageType(), typetest.Value(c.properties), model.Position{})
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

func FuzzValidate(f *testing.F) {
	f.Add("vim", "latest")
	f.Add("-y", "1.0")
	f.Add("a$(b)", "1;2")
	f.Fuzz(func(t *testing.T, name, ensure string) {
		spec := &pkg.Spec{Common: model.Common{Name: name, Ensure: ensure}}
		if name == "" || len(spec.Validate()) > 0 {
			return
		}
		if strings.ContainsAny(name+ensure, " \t\n;|&$<>()'\"`\\/*?[]{}=@") || strings.HasPrefix(name, "-") || strings.HasPrefix(ensure, "-") {
			t.Errorf("accepted: %q, %q", name, ensure)
		}
	})
}

// TestManageable covers which package manager is chosen where which are there.
func TestManageable(t *testing.T) {
	dir := t.TempDir()
	facts := func(family string) model.Facts {
		return model.Facts{"host": map[string]any{"info": map[string]any{"platformFamily": family}}}
	}
	for _, c := range []struct {
		family   string
		apt, dnf int
	}{{"debian", 1, 99}, {"rhel", 99, 1}, {"fedora", 99, 1}, {"arch", 50, 50}} {
		for _, p := range []struct {
			own  []string
			want int
		}{{[]string{"debian"}, c.apt}, {[]string{"rhel", "fedora"}, c.dnf}} {
			ok, priority, err := pkg.Manageable(facts(c.family), []string{dir}, p.own...)
			if !ok || err != nil || priority != p.want {
				t.Errorf("%s, %v: %v, %d, %v", c.family, p.own, ok, priority, err)
			}
		}
	}
	if ok, priority, err := pkg.Manageable(nil, []string{dir}); !ok || priority != 50 || err != nil {
		t.Errorf("without facts: %v, %d, %v", ok, priority, err)
	}
	if ok, _, err := pkg.Manageable(facts("debian"), []string{dir, dir + "/apt-get"}, "debian"); ok || err == nil || !strings.Contains(err.Error(), "there is no "+dir+"/apt-get") {
		t.Errorf("without the program: %v, %v", ok, err)
	}
}
