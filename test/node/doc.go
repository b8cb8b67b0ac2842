// Package node tries Penstock on a real node: a kubelet that runs real
// containers, in which a small program trains as the job's framework would have
// it, and DNS by CoreDNS. What is asserted is what only real containers can
// show: that peers find each other and come to one result, and that the
// kubelet's restarts, exit codes, kills and Penstock's own work add up.
//
// The node lives in namespaces of its own and cannot leave anything behind; see
// programs/realnode. It needs Linux, root, cgroups, and mount(8), and a C
// compiler for runc. Its programs come from Go modules ("make node"); there are
// no downloads of images: they are made here, of programs/trainer and programs/sh.
//
//	start.go   what a machine lacks, and the node's start beside a cluster
//	image.go   images of static programs, in the form that containerd imports
//	programs   a module of its own: what a node runs, and what runs on it
package node
