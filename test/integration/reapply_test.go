package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/test/cluster"
)

var _ = Describe("re-applying", func() {
	samples := func() map[string]string {
		root, err := cluster.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		files, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		all := map[string]string{"alpha": alphaJob("again"), "hub": hubJob("again")}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), "refused") {
				continue
			}
			content, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			all[filepath.Base(file)] = string(content)
		}
		Expect(len(all)).To(BeNumerically(">", 3))
		return all
	}

	DescribeTable("an unchanged manifest changes nothing", func(ctx context.Context, args ...string) {
		for name, manifest := range samples() {
			ns := newNamespace(ctx, nil)
			apply := append([]string{"apply", "-n", ns, "-f", "-"}, args...)
			mustKubectl(ctx, manifest, apply...)
			versions := func() string {
				return mustKubectl(ctx, "", "get", "-n", ns, "trainingjobs,rayclusters", "-o", `jsonpath={range .items[*]}{.status.phase}{"="}{.metadata.resourceVersion}{end}`)
			}
			// What the loop writes is status, and within a second; let it come to
			// rest first.
			var before string
			Eventually(func(g Gomega) {
				before = versions()
				time.Sleep(1200 * time.Millisecond)
				g.Expect(versions()).To(And(Equal(before), MatchRegexp("^(Creating|Suspended|)=[0-9]")), name)
			}).WithContext(ctx).Should(Succeed())
			for range 3 {
				mustKubectl(ctx, manifest, apply...)
				Expect(versions()).To(Equal(before), name)
			}
		}
	},
		Entry("client-side"),
		Entry("server-side", "--server-side"),
	)

	// The role is stored in canonical case, so that every apply says it anew.
	It("a role in lower case is accepted and changes nothing of the spec", func(ctx context.Context) {
		ns := newNamespace(ctx, nil)
		manifest := alphaJob("lower", "Worker:", "worker:")
		mustKubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")
		before := get(ctx, "v1", v1.TrainingJobKind, ns, "lower")
		mustKubectl(ctx, manifest, "apply", "-n", ns, "-f", "-")
		after := get(ctx, "v1", v1.TrainingJobKind, ns, "lower")
		Expect(after.Object["spec"]).To(Equal(before.Object["spec"]))
	})
})
