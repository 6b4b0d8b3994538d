// Package packages publishes the packages that are installed on a node.
package status
