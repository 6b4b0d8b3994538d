// Package goss evaluates goss rules in a child process. The library starts processes that cannot be
// stopped, caches its results and logs freely. Only the evaluation of rules is linked: the rest of
// the library costs memory in each process.
package goss

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"reflect"
	"slices"
	"strings"

	"github.com/goss-org/goss/resource"
	"github.com/goss-org/goss/system"
	"golang.org/x/sync/errgroup"
)

// The exit codes of Main.
const (
	exitOK       = 0
	exitCritical = 2
	exitUnknown  = 3
)

// maxAtOnce is how many rules are evaluated at once.
const maxAtOnce = 8

// Main evaluates the rules in stdin, which are JSON, writes the failing ones to
// stdout, and returns the exit code of a plugin: 0 when all rules hold that are
// not skipped, 2 when one does not, 3 when one cannot be evaluated.
func Main(stdin io.Reader, stdout io.Writer) int {
	log.SetOutput(io.Discard)
	rules, err := decode(stdin)
	if err != nil {
		fmt.Fprintf(stdout, "the rules cannot be evaluated: %v\n", err)
		return exitUnknown
	}
	counts := map[int]int{}
	var said []string
	for _, r := range evaluate(rules) {
		outcome := outcomeOf(r)
		counts[outcome]++
		if outcome == resource.FAIL || outcome == resource.UNKNOWN {
			said = append(said, describe(r))
		}
	}
	slices.Sort(said)
	fmt.Fprintln(stdout, strings.Join(append([]string{summary(counts)}, said...), "; "))
	switch {
	case counts[resource.FAIL] > 0:
		return exitCritical
	case counts[resource.UNKNOWN] > 0:
		return exitUnknown
	default:
		return exitOK
	}
}

// outcomeOf separates invalid rules from failing ones: goss fails both.
func outcomeOf(r resource.TestResult) int {
	if r.Err != nil && (strings.HasPrefix(r.Err.Error(), "Syntax Error") || strings.HasPrefix(r.Err.Error(), "error parsing regexp")) {
		return resource.UNKNOWN
	}

	return r.Result
}

func summary(counts map[int]int) string {
	out := fmt.Sprintf("%d of %d rules hold", counts[resource.SUCCESS], counts[resource.SUCCESS]+counts[resource.FAIL])
	if n := counts[resource.SKIP]; n > 0 {
		out += fmt.Sprintf(", %d skipped", n)
	}
	if n := counts[resource.UNKNOWN]; n > 0 {
		out += fmt.Sprintf(", %d cannot be evaluated", n)
	}

	return out
}

func evaluate(rules []resource.Resource) []resource.TestResult {
	sys := system.New("")
	each := make([][]resource.TestResult, len(rules))
	var all errgroup.Group
	all.SetLimit(maxAtOnce)
	for i, rule := range rules {
		all.Go(func() error {
			each[i] = recovered(rule, sys)
			return nil
		})
	}
	_ = all.Wait()

	return slices.Concat(each...)
}

// recovered turns a panic of the library into a result.
func recovered(rule resource.Resource, sys *system.System) (out []resource.TestResult) {
	defer func() {
		if v := recover(); v != nil {
			err := resource.ValidateError(fmt.Sprintf("panic in goss: %v", v))
			result := resource.TestResult{Result: resource.UNKNOWN, ResourceType: rule.TypeName(), Err: &err}
			if named, ok := rule.(resource.ResourceRead); ok {
				result.ResourceId = named.ID()
			}
			out = []resource.TestResult{result}
		}
	}()

	return rule.Validate(sys)
}

func describe(r resource.TestResult) string {
	said := ""
	if r.Err != nil {
		said = "Error " + r.Err.Error()
	} else {
		m := r.MatcherResult
		said = fmt.Sprintf("Expected %s %s %s", short(m.Actual), m.Message, short(m.Expected))
	}

	return strings.Join(strings.Fields(fmt.Sprintf("%s: %s: %s: %s", r.ResourceType, r.ResourceId, r.Property, said)), " ")
}

// maxValue bounds the shown part of a value.
const maxValue = 500

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, v)
	}
	if len(text) > maxValue {
		return strings.ToValidUTF8(string(text[:maxValue]), "") + "…"
	}

	return string(text)
}

// maxRules bounds the input.
const maxRules = 16 << 20

// Rules are rules by kind, as in a goss.yaml, without includes.
type Rules struct {
	Addrs        resource.AddrMap        `json:"addr"`
	Commands     resource.CommandMap     `json:"command"`
	DNS          resource.DNSMap         `json:"dns"`
	Files        resource.FileMap        `json:"file"`
	Groups       resource.GroupMap       `json:"group"`
	HTTPs        resource.HTTPMap        `json:"http"`
	Interfaces   resource.InterfaceMap   `json:"interface"`
	KernelParams resource.KernelParamMap `json:"kernel-param"`
	Matchings    resource.MatchingMap    `json:"matching"`
	Mounts       resource.MountMap       `json:"mount"`
	Packages     resource.PackageMap     `json:"package"`
	Ports        resource.PortMap        `json:"port"`
	Processes    resource.ProcessMap     `json:"process"`
	Services     resource.ServiceMap     `json:"service"`
	Users        resource.UserMap        `json:"user"`
}

// decode reads rules. They are not templates: the manifest was resolved
// already.
func decode(stdin io.Reader) ([]resource.Resource, error) {
	text, err := io.ReadAll(io.LimitReader(stdin, maxRules+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxRules:
		return nil, fmt.Errorf("they are larger than %d bytes", maxRules)
	}
	var rules Rules
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules); err != nil {
		return nil, err
	}
	var out []resource.Resource
	kinds := reflect.ValueOf(rules)
	for i := range kinds.NumField() {
		for all := kinds.Field(i).MapRange(); all.Next(); {
			out = append(out, all.Value().Interface().(resource.Resource))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there are none")
	}

	return out, nil
}
