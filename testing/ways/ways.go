// Package ways compares the entry points for one resource: flags and standard input, local and on a fleet.
// Each must return the same transaction.
package ways

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Node is the node that is asked by the fleet's commands.
const Node = "web01"

// Machine is where muster runs, with an agent called Node and the server that it
// follows.
type Machine interface {
	// Muster runs muster and gives its exit code and standard output. Standard
	// error is for the log of the test.
	Muster(t *testing.T, stdin string, args ...string) (code int, stdout string)
}

// Case is one resource.
type Case struct {
	Type *resource.Type
	// Properties are the resource's own, the name among them.
	Properties map[string]any
	// Outcome is the result. Noop is the result in noop; empty: the change is predicted.
	Outcome, Noop model.Outcome
	// Reset brings the machine to where it was before.
	Reset func(t *testing.T)
	// StatusLacks are values that only the transaction has, because they stem from the change and not from
	// the machine.
	StatusLacks []string
	// NoStatus means that there is nothing that status could show.
	NoStatus bool
}

// way is one way to the same state.
type way struct {
	name  string
	stdin string
	args  []string
	// state extracts the transaction from the output.
	state func(printed map[string]any) any
}

// Compare goes every way, as noop and then in earnest, and fails the test where
// the transactions differ, where noop changed anything, and where help, status or
// the transaction lack what the type has.
func Compare(t *testing.T, m Machine, c Case) {
	t.Helper()
	c.help(t, m)
	for _, noop := range []bool{true, false} {
		var first map[string]any
		for i, w := range c.ways(noop) {
			c.Reset(t)
			got := c.transaction(t, m, w, noop)
			if i == 0 {
				first = got
				continue
			}
			if !reflect.DeepEqual(got, first) {
				t.Errorf("%s, noop %t, gives\n%s\nand by flags it is\n%s", w.name, noop, indented(got), indented(first))
			}
		}
		if !noop && !c.NoStatus {
			c.status(t, m, first)
		}
	}
}

func (c Case) name() string { return c.Properties["name"].(string) }

func (c Case) outcome(noop bool) model.Outcome {
	if noop {
		return cmp.Or(c.Noop, model.OutcomeNoop)
	}

	return c.Outcome
}

func (c Case) ways(noop bool) []way {
	own := func(printed map[string]any) any { return printed }
	response := func(printed map[string]any) any { return printed["state"] }
	answer := func(printed map[string]any) any {
		answers, _ := printed["answers"].([]any)
		if len(answers) != 1 {
			return nil
		}
		return answers[0].(map[string]any)["state"]
	}
	flags := func(taken ...string) []string { return append([]string{c.Type.Name, c.name()}, c.flags(taken...)...) }
	fleet := []string{"fleet", "ensure", "--node", Node, "--json"}
	ensure := []string{"ensure", "--json"}
	if noop {
		fleet, ensure = append(fleet, "--noop"), append(ensure, "--noop")
	}

	return []way{
		{"by flags", "", append(ensure, flags(takenLocally()...)...), own},
		{"a request over standard input", c.request(noop), []string{"ensure", "api", "pipe"}, response},
		{"a request on the fleet", c.request(noop), append(slices.Clone(fleet), "request", "-"), answer},
		{"by flags on the fleet", "", append(slices.Clone(fleet), flags(takenOnFleet()...)...), answer},
	}
}

// takenLocally are flags of muster ensure, takenOnFleet flags of a request. A property of that name has the
// type as prefix.
func takenLocally() []string { return []string{"noop"} }
func takenOnFleet() []string { return []string{"group", "noop", "timeout"} }

// flag returns the name of the flag of a property.
func (c Case) flag(key string, taken []string) string {
	name := strings.ReplaceAll(key, "_", "-")
	if slices.Contains(taken, name) {
		return c.Type.Name + "-" + name
	}

	return name
}

// flags returns the properties as the flags of the type's command.
func (c Case) flags(taken ...string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.Properties)) {
		flag := "--" + c.flag(key, taken)
		switch v := c.Properties[key].(type) {
		case bool:
			if !v {
				flag = "--no-" + strings.TrimPrefix(flag, "--")
			}
			out = append(out, flag)
		case []string:
			for _, item := range v {
				out = append(out, flag+"="+item)
			}
		case map[string]string:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				out = append(out, flag+"="+name+"="+v[name])
			}
		default:
			if key != "name" {
				out = append(out, flag+"="+fmt.Sprint(v))
			}
		}
	}

	return out
}

func (c Case) request(noop bool) string {
	properties, err := json.Marshal(c.Properties)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: c.Type.Name, Properties: properties, Noop: noop})
	if err != nil {
		panic(err)
	}

	return string(text)
}

// transaction uses one entry point and returns the transaction without the values that depend on the entry
// point.
func (c Case) transaction(t *testing.T, m Machine, w way, noop bool) map[string]any {
	t.Helper()
	wantCode := 0
	if c.outcome(noop) == model.OutcomeFailed {
		wantCode = 1
	}
	code, stdout := m.Muster(t, w.stdin, w.args...)
	var printed map[string]any
	// Flags print a line for each resource; the requested one is the last.
	var err error
	for d := json.NewDecoder(strings.NewReader(stdout)); err == nil; {
		var next map[string]any
		if err = d.Decode(&next); err == nil {
			printed = next
		}
	}
	if !errors.Is(err, io.EOF) || code != wantCode {
		t.Fatalf("%s: exit code %d, %v\n%s", w.name, code, err, stdout)
	}
	state, ok := w.state(printed).(map[string]any)
	if !ok {
		t.Fatalf("%s: no transaction in\n%s", w.name, stdout)
	}
	c.expect(t, w, state, noop)
	for _, key := range []string{"event_id", "timestamp", "duration", "run_id", "node", "manifest", "cause", "correlation_id", "source"} {
		delete(state, key)
	}

	return withoutTimes(state).(map[string]any)
}

// expect checks the expected result of the resource.
func (c Case) expect(t *testing.T, w way, state map[string]any, noop bool) {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var tx model.Transaction
	if err := json.Unmarshal(text, &tx); err != nil {
		t.Fatal(err)
	}
	want := c.outcome(noop)
	if tx.Outcome() != want || tx.Type != c.Type.Name || tx.Name != c.name() || tx.Provider == "" || tx.EventID == "" || tx.RunID == "" {
		t.Errorf("%s, noop %t: the outcome is %s, not %s:\n%s", w.name, noop, tx.Outcome(), want, text)
	}
}

// withoutTimes leaves out when something was changed.
func withoutTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "mtime")
		for key := range v {
			v[key] = withoutTimes(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
	}

	return v
}

// help checks that the help of the type describes it and all its properties.
func (c Case) help(t *testing.T, m Machine) {
	t.Helper()
	for _, w := range []struct{ command, taken []string }{{[]string{"ensure"}, takenLocally()}, {[]string{"status"}, nil}, {[]string{"fleet", "ensure"}, takenOnFleet()}} {
		command := w.command
		code, text := m.Muster(t, "", append(command, c.Type.Name, "--help")...)
		if code != 0 || !strings.Contains(text, c.Type.Summary) || !strings.Contains(text, c.Type.NameHelp) {
			t.Errorf("%s %s --help: exit code %d\n%s", strings.Join(command, " "), c.Type.Name, code, text)
		}
		for _, p := range c.Type.Properties {
			flag := c.flag(p.Key, w.taken)
			has := strings.Contains(text, "--"+flag+"=") || strings.Contains(text, "--[no-]"+flag)
			if !has && p.Key != "name" && p.GoType.Kind() != reflect.Struct {
				t.Errorf("%s %s --help says nothing of --%s", strings.Join(command, " "), c.Type.Name, flag)
			}
		}
	}
}

// status compares what muster status says with the status of the transaction.
func (c Case) status(t *testing.T, m Machine, transaction map[string]any) {
	t.Helper()
	code, text := m.Muster(t, "", append([]string{"status", c.Type.Name, c.name()}, c.flags()...)...)
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 0 {
		t.Fatalf("status: exit code %d, %v\n%s", code, err, text)
	}
	want, _ := transaction["status"].(map[string]any)
	for _, key := range c.StatusLacks {
		delete(want, key)
	}
	if !reflect.DeepEqual(withoutTimes(got), any(want)) {
		t.Errorf("status says\n%s\nand the transaction\n%s", indented(got), indented(want))
	}
}

func indented(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}

	return string(text)
}
