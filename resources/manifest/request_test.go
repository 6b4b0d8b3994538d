package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestParseRequest reads requests in JSON and YAML and decodes their resources.
func TestParseRequest(t *testing.T) {
	for name, tc := range map[string]struct{ in, properties, spec string }{
		"json":     {`{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{"name":"/a","mode":"0644","count":2}}`, `{"name":"/a","mode":"0644","count":2}`, `{"name":"/a","ensure":"present","mode":"0644","count":2}`},
		"yaml":     {"protocol: io.choria.ccm.v1.resource.ensure.request\ntype: file\nproperties:\n  name: /a\n  mode: 0644\n  content: |\n    a\n  args: [x, 1.10]\n  env: {A: ~}\n  force: true\n", `{"name":"/a","mode":"0644","content":"a\n","args":["x",1.10],"env":{"A":null},"force":true}`, `{"name":"/a","ensure":"present","content":"a\n","mode":"0644","force":true,"args":["x","1.10"],"env":{"A":""}}`},
		"literal":  {`{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exec","properties":{"name":"echo ${PATH} {{ x }}"}}`, `{"name":"echo ${PATH} {{ x }}"}`, `{"name":"echo ${PATH} {{ x }}","ensure":"present"}`},
		"all keys": {`{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{"name":"/a"},"id":"x","expires":"2030-01-31T12:00:00Z","noop":true}`, `{"name":"/a"}`, `{"name":"/a","ensure":"present"}`},
		"check":    {`{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exec","properties":{"name":"/a"},"check":true}`, `{"name":"/a"}`, `{"name":"/a","ensure":"present"}`},
	} {
		t.Run(name, func(t *testing.T) {
			request, properties, err := manifest.ParseRequest("r", []byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(request.Properties) != tc.properties || request.Protocol != model.ProtocolEnsureRequest {
				t.Errorf("got  %s\nwant %s", request.Properties, tc.properties)
			}
			if name == "all keys" && (request.ID != "x" || !request.Noop || !request.Expires.Equal(time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC))) {
				t.Errorf("got %+v", request)
			}
			if request.Check != (name == "check") {
				t.Errorf("got %+v", request)
			}
			res, err := manifest.NewLoader(options()).DecodeOne(request.Type, properties)
			if err != nil {
				t.Fatal(err)
			}
			if spec, err := json.Marshal(res.Spec); err != nil || string(spec) != tc.spec {
				t.Errorf("got  %s\nwant %s", spec, tc.spec)
			}
		})
	}
}

// TestRequestProblems checks the problems of requests.
func TestRequestProblems(t *testing.T) {
	const head = "protocol: io.choria.ccm.v1.resource.ensure.request\n"
	for name, tc := range map[string]struct{ in, want string }{
		"empty":            {"", "r:1:1: the document is empty"},
		"text":             {"hello", "r:1:1: a request must be a mapping, not a string"},
		"broken":           {"{\"protocol\": ", "r:1:13: invalid JSON: it ends too early (a bracket, brace or quote is not closed)"},
		"broken inside":    {"{\"protocol\":\n  \"x\" y}", "r:2:7: invalid JSON: unexpected 'y' after a value (a comma or a closing brace is missing before it)"},
		"nothing":          {"{}", "r:1:1: the request has no `protocol` (add \"protocol\": \"io.choria.ccm.v1.resource.ensure.request\")\nr:1:1: the request has no `type` (add \"type\": \"file\")"},
		"protocol":         {"protocol: io.choria.ccm.v2.resource.ensure.request\ntype: file\n", "r:1:11: the protocol is \"io.choria.ccm.v2.resource.ensure.request\" (it must be io.choria.ccm.v1.resource.ensure.request)"},
		"empty protocol":   {"protocol: \"\"\ntype: file\n", "r:1:1: the request has no `protocol` (add \"protocol\": \"io.choria.ccm.v1.resource.ensure.request\")"},
		"long id":          {head + "type: file\nid: " + strings.Repeat("x", 129) + "\nproperties: {name: /a}\n", "r:3:5: `id` must be at most 128 characters that can be printed"},
		"id of lines":      {head + "type: file\nid: \"a\\nb\"\nproperties: {name: /a}\n", "r:3:5: `id` must be at most 128 characters that can be printed"},
		"unknown key":      {head + "typ: file\n", "r:1:1: the request has no `type` (add \"type\": \"file\")\nr:2:1: unknown key `typ` in the request (did you mean `type`?)"},
		"type":             {head + "type: [file]\n", "r:2:7: `type` must be text, not a list"},
		"properties":       {head + "type: file\nproperties: [a]\n", "r:3:13: `properties` must be a mapping, not a list"},
		"expires":          {head + "type: file\nexpires: tomorrow\n", "r:3:10: `expires` must be a time as in RFC 3339 (for example 2030-01-31T12:00:00Z)"},
		"noop":             {head + "type: file\nnoop: maybe\n", "r:3:7: `noop` must be true or false"},
		"noop text":        {head + "type: file\nnoop: \"true\"\n", "r:3:7: `noop` must be true or false"},
		"check":            {head + "type: exec\ncheck: maybe\n", "r:3:8: `check` must be true or false"},
		"check of a file":  {head + "type: file\ncheck: true\n", "r:3:8: `check` is for the type exec, not file"},
		"duplicate":        {`{"type": "file", "type": "exec"}`, "r:1:18: duplicate key `type`, first at r:1:2 (keep one of them)"},
		"decode: type":     {head + "type: fil\nproperties: {name: /a}\n", "r:3:13: unknown resource type `fil` (did you mean `file`?)"},
		"decode: far type": {head + "type: zookeeper\nproperties: {name: /a}\n", "r:3:13: unknown resource type `zookeeper` (one of file, package, exec)"},
		"decode: name":     {head + "type: file\nproperties: {}\n", "r:3:13: the file needs a name (the path)"},
		"decode: none":     {head + "type: file\n", "the file needs a name (the path)"},
		"decode: key":      {head + "type: file\nproperties: {name: /a, mod: x}\n", "r:3:24: unknown property `mod` of file (did you mean `mode`?)"},
		"decode: value":    {head + "type: file\nproperties: {name: /a, mode: rw, count: x}\n", "r:3:30: invalid mode \"rw\" (four octal digits)\nr:3:41: `count` must be a whole number, not \"x\""},
		"decode: control":  {head + "type: file\nproperties: {name: /a, control: {if: 'true'}}\n", "r:3:24: `control` is not allowed in a request (evaluate the condition before the request)"},
	} {
		t.Run(name, func(t *testing.T) {
			request, properties, err := manifest.ParseRequest("r", []byte(tc.in))
			if err == nil {
				_, err = manifest.NewLoader(options()).DecodeOne(request.Type, properties)
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
