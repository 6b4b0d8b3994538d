package manifest_test

import (
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
)

// TestDocuments resolves the documents in testdata.
func TestDocuments(t *testing.T) {
	for name, want := range map[string]string{
		"manifest.yaml": lines(
			`package {"name":"apache2","ensure":"present"}`,
			`file {"name":"/etc/motd","ensure":"present","control":{"if":"Facts.cores \u003e 1","unless":"${ Facts.os == 'rhel' }"},"content":"Managed\n\n  indented\n${HOME} {{","mode":"0644","owner":"root"}`,
			`file {"name":"/etc/app.conf","ensure":"present","require":["package#apache2"],"content":"port=8080 host=web01","mode":"0644","owner":"root"}`,
			`exec {"name":"/usr/bin/app --check","ensure":"present","alias":"check","subscribe":["file#/etc/app.conf"],"args":["a","b","c"]}`,
			`file {"name":"/var/lib/result","ensure":"present","require":["exec#check"]} late`),
		"ccm.yaml": lines(
			`package {"name":"apache2","ensure":"present"}`,
			`file {"name":"/var/www/html/index.html","ensure":"present","content":"Hello from web01\n","mode":"0644","owner":"root"}`,
			`exec {"name":"/usr/sbin/apachectl graceful","ensure":"present","subscribe":["file#/var/www/html/index.html"]}`),
	} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(t, string(data), options(), manifest.Inputs{}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
