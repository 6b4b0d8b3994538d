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

// maxRules bounds what is read as rules.
const maxRules = 16 << 20

// Rules are rules by their kind, as goss has them in a goss.yaml. Rules of
// other files are none of them.
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

// decode reads rules. They are no template to be filled in: the manifest they
// come from was resolved already.
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
