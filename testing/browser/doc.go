// Package browser tests the dashboard in a browser. It needs Chromium, node, playwright-core and axe-core,
// which .ci/run installs.
package browser
