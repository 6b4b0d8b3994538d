// Package requests answers the requests of operators to one node. Service accepts ensure and run
// requests, executes each once, also after a restart, and reads the state of single resources.
// Previews answers previews of assignments.
package requests
