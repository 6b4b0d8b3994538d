package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
)

// build returns the graph of resources in YAML flow style.
func build(t *testing.T, resourcesText string) *plan.Graph {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte("muster: {resources: ["+resourcesText+"]}"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := plan.Build(found.Resources, nil)
	if err != nil {
		t.Fatal(err)
	}

	return g
}

func file(path string) string {
	return "{file: [{" + path + ": {content: x, owner: root, group: root, mode: '0644'}}]}"
}

func directory(path string) string {
	return "{file: [{" + path + ": {ensure: directory, owner: root, group: root, mode: '0755'}}]}"
}

// ref returns a reference.
func ref(typ, name string) model.Ref { return model.Ref{Type: typ, Name: name} }

var start = time.Unix(1_000_000, 0)

// TestConflicts: the second manifest must wait for the first.
func TestConflicts(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "other": "link/"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	// More links, and more names in one link, than a run follows.
	for i := range 41 {
		if err := os.Symlink(fmt.Sprint(i-1), filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"-1": "real", "names": strings.Repeat("real/../", 500) + "real"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	absent := "{file: [{/srv/app: {ensure: absent}}]}"
	exec := "{exec: [{long: {command: sleep 600}}]}"
	for name, c := range map[string]struct {
		one, two string
		waits    bool
	}{
		"different files":                             {file("/etc/a"), file("/etc/b"), false},
		"the same file":                               {file("/etc/a"), file("/etc/a"), true},
		"names that begin alike":                      {file("/etc/a"), file("/etc/ab"), false},
		"a file below a directory":                    {directory("/srv/app"), file("/srv/app/deep/down"), true},
		"a file below what is removed":                {absent, file("/srv/app/deep/down"), true},
		"a file beside a directory":                   {directory("/srv/app"), file("/srv/other"), false},
		"the source of a file":                        {file("/etc/a"), "{file: [{/etc/b: {source: /etc/a, owner: root, group: root, mode: '0644'}}]}", true},
		"a link above":                                {file(dir + "/link/f"), file(dir + "/real/f"), true},
		"links above links":                           {file(dir + "/other/f"), file(dir + "/link/f"), true},
		"more links than are followed":                {file(dir + "/40/f"), file(dir + "/real/f"), false},
		"more names than are followed":                {file(dir + "/names/f"), file(dir + "/real/f"), false},
		"links to other files":                        {file(dir + "/link/f"), file(dir + "/real/g"), false},
		"a link as the target of a scaffold":          {"{scaffold: [{" + dir + "/link: {ensure: present, source: /srv/templates}}]}", file(dir + "/real/f"), true},
		"a directory that is missing behind a link":   {file(dir + "/link/new/f"), file(dir + "/real/new/f"), true},
		"packages":                                    {"{package: [{zsh: {}}]}", "{package: [{vim: {}}]}", true},
		"a package and a service":                     {"{package: [{zsh: {}}]}", "{service: [{cron: {ensure: running}}]}", true},
		"services":                                    {"{service: [{ssh: {ensure: running}}]}", "{service: [{cron: {ensure: running}}]}", true},
		"a package and a file":                        {"{package: [{zsh: {}}]}", file("/etc/a"), false},
		"a service and a file":                        {"{service: [{cron: {ensure: running}}]}", file("/etc/a"), false},
		"a service and its unit":                      {"{service: [{cron: {ensure: running}}]}", file("/etc/systemd/system/cron.service"), true},
		"a service and a drop-in of its unit":         {"{service: [{cron: {ensure: running}}]}", file("/etc/systemd/system/cron.service.d/more.conf"), true},
		"a command and a file":                        {exec, file("/etc/a"), false},
		"a command and packages":                      {exec, "{package: [{zsh: {}}]}", false},
		"two commands":                                {exec, "{exec: [{other: {command: sleep 600}}]}", false},
		"the same command":                            {exec, exec, true},
		"a command that creates":                      {"{exec: [{make: {command: make, creates: /srv/app/out}}]}", file("/srv/app/out"), true},
		"a command and a file beside what it creates": {"{exec: [{make: {command: make, creates: /srv/app/out}}]}", file("/srv/app/in"), false},
		"a command and a file where it works":         {"{exec: [{make: {command: make, cwd: /srv/app}}]}", file("/srv/app/in"), true},
		"a command in the root directory":             {"{exec: [{make: {command: make, cwd: /}}]}", file("/srv/app/in"), false},
		"an archive and a file in its target":         {"{archive: [{/srv/a.tar.gz: {url: 'https://x.example/a.tar.gz', owner: root, group: root, extract_parent: /srv/app, creates: /srv/app/bin}}]}", file("/srv/app/conf"), true},
		"what is not known before":                    {"{exec: [{say: {command: echo x}}]}, {file: [{/etc/a: {content: \"{{ outputs('exec#say').stdout }}\", owner: root, group: root, mode: '0644'}}]}", file("/etc/b"), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
				l := runner.NewLanes()
				first, second := l.Enter(runner.Manifest, "one", start), l.Enter(runner.Manifest, "two", start)
				if first.Begin(build(t, order[0])) != nil {
					t.Fatal("the first waits")
				}
				if blocker := second.Begin(build(t, order[1])); (blocker != nil) != c.waits {
					t.Errorf("it waits for %+v, want that it waits: %v", blocker, c.waits)
				}
				first.Leave()
				if blocker := second.Blocker(); blocker != nil {
					t.Errorf("it waits for %+v when nothing else is there", blocker)
				}
			}
		})
	}
}

// TestChangedLinks: links are followed when a run begins.
func TestChangedLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("before", link); err != nil {
		t.Fatal(err)
	}
	l := runner.NewLanes()
	long, waiting, other := l.Enter(runner.Manifest, "long", start), l.Enter(runner.Manifest, "waiting", start), l.Enter(runner.Manifest, "other", start)
	g := build(t, file("/etc/a")+","+file(link+"/f"))
	if long.Begin(build(t, file("/etc/a"))) != nil || waiting.Begin(g) != long {
		t.Fatal("it does not wait for the long one")
	}
	if err := errors.Join(os.Remove(link), os.Symlink("after", link)); err != nil {
		t.Fatal(err)
	}
	if blocker := other.Begin(build(t, file(dir+"/after/f"))); blocker != nil {
		t.Fatalf("the other one waits for %+v", blocker)
	}
	long.Leave()
	if blocker := waiting.Begin(g); blocker != other {
		t.Errorf("it waits for %+v, and both write one file", blocker)
	}
}

// TestProcessedResourcesBlockNothing: a run claims only its unprocessed resources.
func TestProcessedResourcesBlockNothing(t *testing.T) {
	l := runner.NewLanes()
	one, two := l.Enter(runner.Manifest, "one", start), l.Enter(runner.Manifest, "two", start)
	one.Begin(build(t, file("/etc/a")+","+file("/etc/b")+",{exec: [{long: {command: sleep 600}}]}"))
	if two.Begin(build(t, file("/etc/b"))) != one {
		t.Fatal("it does not wait")
	}
	changed := l.Changed()
	one.Done(ref("file", "/etc/a"))
	select {
	case <-changed:
		t.Error("who waits for another resource is woken")
	default:
	}
	one.Done(ref("file", "/etc/b"))
	<-changed
	if two.Blocker() != nil {
		t.Error("it still waits")
	}
}

// TestAPartBesideItsManifest: a partial run waits only for related resources of the full run.
func TestAPartBesideItsManifest(t *testing.T) {
	g := build(t, file("/etc/a")+","+file("/etc/b")+",{exec: [{long: {command: sleep 600}}, {reload: {command: 'true', refresh_only: true, subscribe: ['file#/etc/b']}}, {after: {command: 'true', require: ['exec#long']}}]},"+
		"{file: [{/etc/needed: {content: x, owner: root, group: root, mode: '0644'}}]},{exec: [{last: {command: 'true', require: ['file#/etc/needed']}}]}")
	for _, c := range []struct {
		of    model.Ref
		done  []model.Ref
		waits bool
	}{
		{ref("file", "/etc/a"), nil, true}, // it is not processed
		{ref("file", "/etc/a"), []model.Ref{ref("file", "/etc/a")}, false},
		{ref("file", "/etc/b"), []model.Ref{ref("file", "/etc/b")}, true}, // its subscriber is not processed
		{ref("file", "/etc/b"), []model.Ref{ref("file", "/etc/b"), ref("exec", "reload")}, false},
		{ref("file", "/etc/needed"), []model.Ref{ref("file", "/etc/needed")}, true},
	} {
		l := runner.NewLanes()
		whole, part := l.Enter(runner.Manifest, "one", start), l.Enter(runner.Part, "one", start)
		whole.Begin(g)
		for _, done := range c.done {
			whole.Done(done)
		}
		p, ok := g.Part([]model.Ref{c.of})
		if !ok {
			t.Fatal("there is no such part")
		}
		if blocker := part.Begin(p); (blocker != nil) != c.waits {
			t.Errorf("%s after %v: it waits for %v, want that it waits: %v", c.of, c.done, blocker, c.waits)
		}
	}
	l := runner.NewLanes()
	whole, part := l.Enter(runner.Manifest, "one", start), l.Enter(runner.Part, "one", start)
	whole.Begin(g)
	whole.Done(ref("file", "/etc/a"))
	p, _ := build(t, file("/etc/a")+","+file("/etc/c")).Part([]model.Ref{ref("file", "/etc/a")})
	if part.Begin(p) != whole {
		t.Error("a part of another version does not wait")
	}
	if !l.IsToCome("one", ref("file", "/etc/a")) {
		t.Error("the part that waits is not to come to its resource")
	}
	part.Leave()
	if l.IsToCome("one", ref("file", "/etc/a")) || !l.IsToCome("one", ref("file", "/etc/b")) || l.IsToCome("two", ref("file", "/etc/b")) || l.IsToCome("one", ref("file", "/etc/x")) {
		t.Error("what is to come is something else")
	}
}

// TestPartsOfAManifest: partial runs work in parallel unless their resources are related.
func TestPartsOfAManifest(t *testing.T) {
	g := build(t, file("/etc/a")+","+file("/etc/b")+",{exec: [{reload: {command: 'true', refresh_only: true, subscribe: ['file#/etc/a', 'file#/etc/b']}}]},"+file("/etc/c"))
	l := runner.NewLanes()
	var all []*runner.Lane
	for _, path := range []string{"/etc/a", "/etc/b", "/etc/c", "/etc/a"} {
		p, ok := g.Part([]model.Ref{ref("file", path)})
		if !ok {
			t.Fatal("there is no such part")
		}
		if refs := []model.Ref{ref("file", path)}; !slices.Equal(l.Admitted("one", g, refs), refs) {
			t.Errorf("%s may not enter", path)
		}
		lane := l.Enter(runner.Part, "one", start)
		all = append(all, lane)
		if blocker, waits := lane.Begin(p), path != "/etc/c" && len(all) > 1; (blocker != nil) != waits {
			t.Errorf("%s waits for %v, want that it waits: %v", path, blocker, waits)
		}
	}
	// a and b have a command, c has none.
	for key, want := range map[string][]model.Ref{"one": {ref("file", "/etc/a"), ref("file", "/etc/c")}, "two": {ref("file", "/etc/a"), ref("file", "/etc/c")}} {
		if got := l.Admitted(key, g, []model.Ref{ref("file", "/etc/a"), ref("file", "/etc/c")}); !slices.Equal(got, want) {
			t.Errorf("of %s may enter %v, want %v", key, got, want)
		}
	}
	all[0].Leave()
	if all[1].Blocker() != nil || all[3].Blocker() == nil {
		t.Error("the first that waits does not go on, or the second overtakes it")
	}
}

// TestFilesBesideLongRepairs: four repairs with commands block no file of their manifest, and four of files
// no command. They block further repairs of their kind.
func TestFilesBesideLongRepairs(t *testing.T) {
	t.Parallel()
	commands, files := []model.Ref{}, []model.Ref{}
	text := ""
	for i := range runner.Most + 1 {
		command, path := fmt.Sprintf("touch /run/%d", i), fmt.Sprintf("/etc/%d", i)
		text += fmt.Sprintf("{exec: [{%s: {creates: /run/%d}}]},%s,", command, i, file(path))
		commands, files = append(commands, ref("exec", command)), append(files, ref("file", path))
	}
	g := build(t, text+"{file: [{/etc/checked: {content: x, owner: root, group: root, mode: '0644', validate: 'test -f {}'}}]},"+
		"{file: [{/etc/healthy: {content: x, owner: root, group: root, mode: '0644', health_checks: [{command: 'true'}]}}]}")
	checked, healthy := ref("file", "/etc/checked"), ref("file", "/etc/healthy")
	for name, c := range map[string]struct{ first, second, last []model.Ref }{
		"commands first": {slices.Concat(commands[:runner.Most], []model.Ref{checked}), files, []model.Ref{commands[runner.Most], healthy}},
		"files first":    {files, commands, files[runner.Most:]},
	} {
		l := runner.NewLanes()
		begin := func(refs []model.Ref) (waits int) {
			for _, r := range refs {
				part, ok := g.Part([]model.Ref{r})
				if !ok {
					t.Fatalf("no part with %s", r)
				}
				if l.Enter(runner.Part, "one", start).Begin(part) != nil {
					waits++
				}
			}
			return waits
		}
		if waits := begin(c.first[:runner.Most]); waits > 0 {
			t.Errorf("%s: %d of them wait", name, waits)
		}
		if got := l.Admitted("one", g, slices.Concat(c.last, c.second)); !slices.Equal(got, c.second) {
			t.Errorf("%s: %v may enter, want %v", name, got, c.second)
		}
		if waits := begin(c.first[runner.Most:]); waits != 1 {
			t.Errorf("%s: %d of one more wait", name, waits)
		}
		if waits := begin(c.second); waits != 1 {
			t.Errorf("%s: %d of the others wait, want the last", name, waits)
		}
		if got := l.Admitted("one", g, slices.Concat(commands, files)); len(got) > 0 {
			t.Errorf("%s: %v may enter, though as many go on as may", name, got)
		}
	}
}

// TestOrder: a run does not overtake a run that it would block. A run that waits blocks no other run.
func TestOrder(t *testing.T) {
	l := runner.NewLanes()
	enter := func(key string) *runner.Lane { return l.Enter(runner.Manifest, key, start) }
	long, waits, behind, free := enter("long"), enter("waits"), enter("behind"), enter("free")
	if long.Begin(build(t, file("/etc/a"))) != nil {
		t.Fatal("the first waits")
	}
	if waits.Begin(build(t, file("/etc/a")+","+file("/etc/b"))) != long {
		t.Error("it does not wait for the long one")
	}
	if behind.Begin(build(t, file("/etc/b"))) != waits {
		t.Error("it overtakes")
	}
	if free.Begin(build(t, file("/etc/c"))) != nil {
		t.Error("what shares nothing waits")
	}
	long.Leave()
	if waits.Blocker() != nil {
		t.Error("it still waits")
	}
}

// TestPreparedRunsOvertakeUnpreparedOnes: the preparation of a run may wait for NATS.
func TestPreparedRunsOvertakeUnpreparedOnes(t *testing.T) {
	l := runner.NewLanes()
	unprepared, prepared := l.Enter(runner.Manifest, "unprepared", start), l.Enter(runner.Manifest, "prepared", start)
	if prepared.Begin(build(t, file("/etc/a"))) != nil {
		t.Error("it waits for a run that is not prepared")
	}
	if unprepared.Begin(build(t, file("/etc/a"))) != prepared {
		t.Error("it does not wait for the run in progress")
	}
	ref := model.Ref{Type: "file", Name: "/etc/a"}
	l = runner.NewLanes()
	whole := l.Enter(runner.Manifest, "one", start)
	if l.IsToCome("one", ref) {
		t.Error("a run that is not prepared may repair what drifts now")
	}
	whole.Begin(build(t, file("/etc/a")))
	if !l.IsToCome("one", ref) {
		t.Error("a run in progress does not come to its resource")
	}
}

// TestMostRunsOfAKind: a few runs work in parallel, and long runs do not block short ones.
func TestMostRunsOfAKind(t *testing.T) {
	l := runner.NewLanes()
	paths := []string{"/etc/a", "/etc/b", "/etc/c", "/etc/d", "/etc/e"}
	var all []*runner.Lane
	for i, path := range paths {
		lane := l.Enter(runner.Manifest, path, start)
		all = append(all, lane)
		if blocker := lane.Begin(build(t, file(path))); (blocker != nil) != (i == runner.Most) {
			t.Errorf("%d waits for %v", i, blocker)
		}
	}
	if l.Enter(runner.Request, "", start).Begin(build(t, file("/etc/f"))) != nil {
		t.Error("a request waits")
	}
	all[1].Leave()
	if all[4].Blocker() != nil {
		t.Error("it still waits")
	}
	if l.Len(runner.Manifest) != 4 || l.Len(runner.Request) != 1 || !l.Has("/etc/a") || l.Has("/etc/b") {
		t.Error("they are counted otherwise")
	}
}

// TestRepairsOfOneManifest: long repairs do not block the repairs of another manifest.
func TestRepairsOfOneManifest(t *testing.T) {
	t.Parallel()
	l, paths := runner.NewLanes(), []string{"/etc/a", "/etc/b", "/etc/c", "/etc/d", "/etc/e"}
	one := build(t, strings.Join([]string{file("/etc/a"), file("/etc/b"), file("/etc/c"), file("/etc/d"), file("/etc/e")}, ","))
	for i, path := range paths {
		part, ok := one.Part([]model.Ref{ref("file", path)})
		if !ok {
			t.Fatal("there is no such part")
		}
		if blocker := l.Enter(runner.Part, "one", start).Begin(part); (blocker != nil) != (i == runner.Most) {
			t.Errorf("the repair of %s waits for %v", path, blocker)
		}
	}
	two, ok := build(t, file("/etc/f")).Part([]model.Ref{ref("file", "/etc/f")})
	if blocker := l.Enter(runner.Part, "two", start).Begin(two); blocker != nil || !ok {
		t.Errorf("that of another manifest waits for %v", blocker)
	}
}

// TestOneAfterTheOther: the next one waits a while for those that run.
func TestManifestsAreShortAtFirst(t *testing.T) {
	l := runner.NewLanes()
	if at := l.Next(); !at.IsZero() {
		t.Errorf("the first waits until %s", at)
	}
	one := l.Enter(runner.Manifest, "one", start)
	l.Enter(runner.Part, "one", start.Add(time.Hour))
	if at := l.Next(); !at.Equal(start.Add(runner.Patience)) {
		t.Errorf("the second waits until %s", at)
	}
	one.Leave()
	if at := l.Next(); !at.IsZero() {
		t.Errorf("after the end of the first the second waits until %s", at)
	}
	l.Enter(runner.Request, "", start)
	if at := l.Next(); !at.Equal(start.Add(runner.Patience)) {
		t.Errorf("after a request it waits until %s", at)
	}
}
