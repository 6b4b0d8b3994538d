package page

import "time"

// Frame is what is around the content of a page.
type Frame struct {
	// Title is that of the document, Section the part of the menu that it belongs to.
	Title, Section string
	// Stream is the URL of its updates, empty where it has none.
	Stream string
	// Asset returns the path of an asset by its name.
	Asset func(name string) string
	// Version is that of muster, Now the time of the server.
	Version string
	Now     time.Time
	// User is who signed in, empty for nobody; Acts is that the server does what operators want.
	User string
	Acts bool
	// Operates is that whoever looks at it may act.
	Operates bool
}

// section is a part of the menu.
type section struct{ name, path, icon string }

// sections returns the menu.
func (f Frame) sections() []section {
	out := []section{
		{"Overview", "/", "overview"}, {"Nodes", "/nodes", "nodes"}, {"Manifests", "/manifests", "manifests"}, {"Events", "/events", "events"},
		{"Requests", "/requests", "requests"}, {"Registrations", "/registrations", "registrations"}, {"Audit", "/audit", "audit"},
	}
	if f.Operates {
		out = append(out, section{"Previews", "/actions/preview", "preview"})
	}
	if f.Acts {
		out = append(out, section{"Actions", "/actions", "actions"})
	}

	return out
}

// settings are those of htmx: nothing is evaluated, nothing is kept in the browser, and nothing is asked of others.
const settings = `{"allowEval":false,"includeIndicatorStyles":false,"historyCacheSize":0,"refreshOnHistoryMiss":true,"selfRequestsOnly":true,"scrollIntoViewOnBoost":false}`
