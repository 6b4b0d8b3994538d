package goss

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/goss-org/goss/resource"
)

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
