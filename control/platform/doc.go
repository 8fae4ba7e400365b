// Package platform reads what the script for clusters that are not Muster's wrote, and puts
// platforms side by side. Pure.
package platform
