// Package ask sends requests to many nodes, in batches if asked, and collects their answers. It also
// runs the actions of operators over HTTP: pause, resume, run and preview. It does not import NATS.
package ask
