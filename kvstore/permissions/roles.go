package permissions

import "github.com/musterfleet/muster/kvstore"

// operatorServices returns what operators publish: reads, assignments, commands
// and requests.
func operatorServices(n kvstore.Names) []Import {
	all := append(api(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Manifests(), ">")},
		Import{Service: true, Subject: n.Command("*.*", "*")},
	)
	for _, verb := range kvstore.Verbs() {
		all = append(all, Import{Service: true, Subject: n.Request(verb, ">")})
	}

	return all
}
