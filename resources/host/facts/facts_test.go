package facts_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/paths"
)

// gather fails the test when anything cannot be had: that much every machine has.
func gather(t *testing.T, o facts.Options) model.Facts {
	t.Helper()
	found, errs := facts.Gather(t.Context(), o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return found
}

// TestStamp changes only with fact files.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := facts.Stamp(dir)
	for _, name := range []string{"facts.yaml", "facts.json", "facts.d/a.yaml", "facts.d/b.json"} {
		put(name, "a: b\n")
		now := facts.Stamp(dir)
		if put(name, "a: longer\n"); now == last || facts.Stamp(dir) == now {
			t.Errorf("%s changes nothing: %q", name, now)
		}
		last = facts.Stamp(dir)
	}
	put("agent.yaml", "x")
	if got := facts.Stamp(dir); got != last || facts.Stamp("") != "" {
		t.Errorf("%q was %q", got, last)
	}
}

func TestGatherOfThisMachine(t *testing.T) {
	found := gather(t, facts.Options{})
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	var decoded model.Facts
	if err := json.Unmarshal(text, &decoded); err != nil || !reflect.DeepEqual(decoded, found) {
		t.Errorf("the facts are not in the form of decoded JSON: %v", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"hostname", "host.info.hostname"} {
		if got := gjson.GetBytes(text, path).String(); got != hostname {
			t.Errorf("%s is %q, want %q", path, got, hostname)
		}
	}
	for _, path := range []string{
		"fqdn", "host.info.platform", "host.info.platformFamily", "host.info.kernelVersion", "host.info.kernelArch", "host.info.hostId",
	} {
		if got := gjson.GetBytes(text, path); got.Type != gjson.String || got.String() == "" {
			t.Errorf("%s is %s", path, got.Raw)
		}
	}
	for _, path := range []string{"host.info.bootTime", "host.info.procs", "cpu.count", "cpu.info.0.cores", "memory.virtual.total"} {
		if got := gjson.GetBytes(text, path); got.Type != gjson.Number || got.Num <= 0 {
			t.Errorf("%s is %s", path, got.Raw)
		}
	}
	for _, path := range []string{
		"host.info.platformVersion", "host.info.virtualizationSystem", "host.info.virtualizationRole", "host.info.uptime", "host.info.rebootRequired", "host.info.platformCodename", "host.info.packageArch", "network.addresses",
		"memory.swap.total", "partition.partitions", "network.interfaces",
	} {
		if !gjson.GetBytes(text, path).Exists() {
			t.Errorf("%s is missing", path)
		}
	}
	if got := gjson.GetBytes(text, "host.info.os").String(); got != "linux" {
		t.Errorf("the system is %q", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestLaterFactsWin(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/facts.json", `{"hostname": "json", "a": {"json": 1, "who": "json"}, "list": [1, 2]}`)
	write(t, dir+"/facts.yaml", "a: {yaml: 1, who: yaml}\nlist: [3]\nhost: {info: {platform: mine}}\n")
	write(t, dir+"/facts.d/20.json", `{"a": {"who": "20", "last": "20"}}`)
	write(t, dir+"/facts.d/10.yaml", "a: {who: 10, last: 10, ten: 1}\n")
	write(t, dir+"/facts.d/.hidden.yaml", "a: {hidden: 1}\n")
	write(t, dir+"/facts.d/30.yaml~", "a: {backup: 1}\n")
	extra := []map[string]any{{"a": map[string]any{"who": "first"}, "b": map[string]any{"kept": true}}, {"a": map[string]any{"who": "last"}, "b": "scalar"}}
	found := gather(t, facts.Options{Dir: dir, Extra: extra})
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"hostname": `"json"`, "a": `{"json":1,"last":"20","ten":1,"who":"last","yaml":1}`, "list": `[3]`, "b": `"scalar"`, "host.info.platform": `"mine"`, "host.info.os": `"linux"`,
	} {
		if got := gjson.GetBytes(text, path).Raw; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if extra[0]["a"].(map[string]any)["who"] != "first" {
		t.Error("what was given was changed")
	}
}

// TestProgramsAmongFactFiles has programs of another tool in facts.d.
func TestProgramsAmongFactFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"role.sh", "program", "readme.txt", "ok.yaml", ".hidden"} {
		write(t, dir+"/facts.d/"+name, "role: db\n")
	}
	for _, name := range []string{"role.sh", "program", "ok.yaml", ".hidden"} {
		if err := os.Chmod(dir+"/facts.d/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, errs := facts.Gather(t.Context(), facts.Options{Dir: dir})
	want := dir + "/facts.d: programs are not read for facts: program, role.sh (let a timer write their output to a .json or .yaml file there)"
	if len(errs) != 1 || !errors.Is(errs[0], facts.ErrIgnored) || !strings.Contains(errs[0].Error(), want) || found["role"] != "db" {
		t.Errorf("%q, role %v", errs, found["role"])
	}
}

// TestFactFilesEndingInYml checks that .yml files give a warning and no facts, as in CCM.
func TestFactFilesEndingInYml(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/facts.d/20-b.yaml", "role: db\n")
	write(t, dir+"/facts.d/30-c.yml", "role: web\nonly: yml\n")
	write(t, dir+"/facts.d/.40.yml", "role: hidden\n")
	found, errs := facts.Gather(t.Context(), facts.Options{Dir: dir})
	want := dir + "/facts.d: .yml files are not read for facts: 30-c.yml (rename them to .yaml)"
	if len(errs) != 1 || !errors.Is(errs[0], facts.ErrIgnored) || !strings.Contains(errs[0].Error(), want) || found["role"] != "db" || found["only"] != nil {
		t.Errorf("%q, role %v", errs, found["role"])
	}
}

func TestBrokenFactFilesAreToldAndLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/facts.json", "{\n  broken\n}")
	write(t, dir+"/facts.yaml", "good: true\n")
	write(t, dir+"/facts.d/a.yaml", "one: 1\n one: [\n")
	write(t, dir+"/facts.d/large.json", `{"x": "`+strings.Repeat("x", 5<<20)+`"}`)
	if err := os.Mkdir(dir+"/facts.d/dir.yaml", 0o755); err != nil {
		t.Fatal(err)
	}
	found, errs := facts.Gather(t.Context(), facts.Options{Dir: dir})
	if found["good"] != true || found["hostname"] == nil {
		t.Errorf("the good ones are missing: %v, %v", found["good"], found["hostname"])
	}
	want := []string{dir + "/facts.json:2:3: ", dir + "/facts.d/a.yaml:2:5: ", dir + "/facts.d/dir.yaml: is not a fact file", dir + "/facts.d/large.json: is not a fact file"}
	if len(errs) != len(want) {
		t.Fatalf("the errors are %v", errs)
	}
	for i, err := range errs {
		var p model.Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want[i]) {
			t.Errorf("the error is %v, want %s", err, want[i])
		}
	}
	if err := os.RemoveAll(dir + "/facts.d"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/facts.d", "")
	if _, errs := facts.Gather(t.Context(), facts.Options{Dir: dir}); len(errs) != 2 {
		t.Errorf("a file where a directory belongs: %v", errs)
	}
}

// TestReadFile reads regular files up to the size limit and refuses all others without waiting.
// TestFactFilesOfOthers skips a file that its group may write.
func TestFactFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"facts.json": 0o644, "facts.yaml": 0o664} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(`{"from_`+filepath.Ext(name)[1:]+`": true}`), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	found, errs := facts.Gather(t.Context(), facts.Options{Dir: dir})
	if len(errs) != 1 || !errors.Is(errs[0], paths.ErrUntrusted) || !strings.Contains(errs[0].Error(), "facts.yaml") {
		t.Errorf("the errors are %v", errs)
	}
	if found["from_json"] != true || found["from_yaml"] != nil {
		t.Errorf("the facts are %v, %v", found["from_json"], found["from_yaml"])
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/good.yaml", "a: {b: 1}\n")
	write(t, dir+"/large.yaml", "a: "+strings.Repeat("x", 4<<20))
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good.yaml", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir + "/good.yaml", dir + "/link"} {
		if found, err := facts.ReadFile(path); err != nil || !reflect.DeepEqual(found, map[string]any{"a": map[string]any{"b": 1.0}}) {
			t.Errorf("%s gives %v, %v", path, found, err)
		}
	}
	for _, path := range []string{dir, dir + "/large.yaml", dir + "/fifo", "/dev/zero"} {
		if _, err := facts.ReadFile(path); err == nil || err.Error() != path+": is not a fact file (it must be a regular file of at most 4 MiB)" {
			t.Errorf("%s gives %v", path, err)
		}
	}
	if err := os.Chmod(dir+"/good.yaml", 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := facts.ReadFile(dir + "/link"); !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chmod go-w "+dir) {
		t.Errorf("a file that others may write to gives %v", err)
	}
	if _, err := facts.ReadFile(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestStableFacts(t *testing.T) {
	decode := func(text string) model.Facts {
		var f model.Facts
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	const before = `{"host":{"info":{"hostname":"a","uptime":1,"procs":2,"bootTime":3}},
		"memory":{"virtual":{"total":10,"free":1},"swap":{"total":5,"free":5}},
		"partition":{"partitions":[{"device":"/dev/a","usage":{"total":9,"free":8,"path":"/"}},{"device":"/dev/b"}]},
		"cpu":{"count":2,"info":[{"mhz":1000,"modelName":"m"}]},"uptime":"custom","list":[1]}`
	base := decode(before)
	for _, c := range []struct {
		old, new string
		same     bool
	}{
		{`"uptime":1`, `"uptime":2`, true}, {`"procs":2`, `"procs":3`, true}, {`"bootTime":3`, `"bootTime":4`, true},
		{`"total":10,"free":1`, `"total":10,"free":2`, true}, {`"free":8`, `"free":7`, true}, {`"mhz":1000`, `"mhz":2000`, true},
		{`"total":10`, `"total":11`, false}, {`"total":9`, `"total":8`, false}, {`"hostname":"a"`, `"hostname":"b"`, false},
		{`"modelName":"m"`, `"modelName":"n"`, false}, {`"/dev/b"`, `"/dev/c"`, false}, {`"uptime":"custom"`, `"uptime":"other"`, false},
		{`[1]`, `[2]`, false},
	} {
		after := decode(strings.Replace(before, c.old, c.new, 1))
		if reflect.DeepEqual(base, after) {
			t.Fatalf("%s changes nothing", c.new)
		}
		if same := facts.Digest(base) == facts.Digest(after); same != c.same {
			t.Errorf("%s for %s: the same is %v", c.new, c.old, same)
		}
	}
	if !reflect.DeepEqual(base, decode(before)) {
		t.Error("the facts themselves were changed")
	}
	odd := model.Facts{"host": "text", "memory": 1.0, "partition": map[string]any{"partitions": "x"}, "cpu": nil}
	if got := facts.Stable(odd); !reflect.DeepEqual(got, odd) {
		t.Errorf("facts of another shape: %v", got)
	}
	if facts.Digest(model.Facts{"f": func() {}}) == "" {
		t.Error("facts that are no JSON have no digest")
	}
}

func TestTheStableFactsOfThisMachineStay(t *testing.T) {
	if first, second := facts.Digest(gather(t, facts.Options{})), facts.Digest(gather(t, facts.Options{})); first != second {
		t.Error("two looks at this machine differ")
	}
}

func BenchmarkGather(b *testing.B) {
	for b.Loop() {
		if _, errs := facts.Gather(b.Context(), facts.Options{}); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
