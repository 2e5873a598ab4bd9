// Package debian makes sure that programs from Debian packages are on this
// machine. What is there already is used as it is. What has to be installed is
// installed with apt-get, and its services are neither started nor enabled.
package debian
