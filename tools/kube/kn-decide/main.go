// kn-decide asks Knative's own scaler what it decides.
//
// Each line of the input is JSON. A line with "containerConcurrency" begins a scenario:
//
//	{"containerConcurrency": 5, "annotations": {"autoscaling.knative.dev/window": "30s"}, "config": {}, "ready": 1}
//
// Each further line is a second of it: the value that is counted, concurrency or requests per second, and the replicas
// that are ready; without "ready", those that the last decision asked for:
//
//	{"value": 12.5}
//
// Each second second is a tick, for which a line is written: {"desired": 4, "bounded": 4, "excess": -208}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"knative.dev/serving/pkg/apis/autoscaling/v1alpha1"
	"knative.dev/serving/pkg/autoscaler/aggregation"
	"knative.dev/serving/pkg/autoscaler/config"
	"knative.dev/serving/pkg/autoscaler/scaling"
	kparesources "knative.dev/serving/pkg/reconciler/autoscaling/kpa/resources"
	"knative.dev/serving/pkg/reconciler/autoscaling/resources"
)

// line is a scenario's first line, or one of its seconds.
type line struct {
	ContainerConcurrency *int64            `json:"containerConcurrency"`
	Annotations          map[string]string `json:"annotations"`
	Config               map[string]string `json:"config"`
	Value                float64           `json:"value"`
	Ready                *int              `json:"ready"`
}

// replicas counts those that are ready.
type replicas struct{ ready int }

func (r *replicas) ReadyCount() (int, error)    { return r.ready, nil }
func (r *replicas) NotReadyCount() (int, error) { return 0, nil }

// windows are the values that were recorded.
type windows struct {
	stable, panic *aggregation.TimedFloat64Buckets
}

func (w *windows) StableAndPanicConcurrency(_ types.NamespacedName, now time.Time) (float64, float64, error) {
	return w.stable.WindowAverage(now), w.panic.WindowAverage(now), nil
}

func (w *windows) StableAndPanicRPS(name types.NamespacedName, now time.Time) (float64, float64, error) {
	return w.StableAndPanicConcurrency(name, now)
}

// scenario is one service and its scaler.
type scenario struct {
	scaler        scaling.UniScaler
	windows       *windows
	replicas      *replicas
	least, most   int32
	now           time.Time
	seconds       int
	followsItself bool
}

func begin(first line) (*scenario, error) {
	settings, err := config.NewConfigFromMap(first.Config)
	if err != nil {
		return nil, err
	}
	service := &v1alpha1.PodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r", Annotations: first.Annotations},
		Spec: v1alpha1.PodAutoscalerSpec{
			ContainerConcurrency: *first.ContainerConcurrency,
			Reachability:         v1alpha1.ReachabilityReachable,
		},
	}
	metric := resources.MakeMetric(service, "service", settings).Spec
	one := &scenario{
		windows: &windows{
			stable: aggregation.NewTimedFloat64Buckets(metric.StableWindow, time.Second),
			panic:  aggregation.NewTimedFloat64Buckets(metric.PanicWindow, time.Second),
		},
		replicas:      &replicas{},
		now:           time.Now().Truncate(time.Second),
		followsItself: true,
	}
	if first.Ready != nil {
		one.replicas.ready = *first.Ready
	}
	decider := kparesources.MakeDecider(service, settings)
	one.scaler = scaling.New(*attribute.EmptySet(), noop.NewMeterProvider(), "n", "r", one.windows, one.replicas, &decider.Spec)
	one.least, one.most = service.ScaleBounds(settings)
	return one, nil
}

// pass lets a second pass, and writes the decision of a tick.
func (s *scenario) pass(second line) {
	if second.Ready != nil {
		s.replicas.ready, s.followsItself = *second.Ready, false
	}
	s.windows.stable.Record(s.now, second.Value)
	s.windows.panic.Record(s.now, second.Value)
	if s.seconds%2 == 1 {
		decision := s.scaler.Scale(zap.NewNop().Sugar(), s.now)
		bounded := max(decision.DesiredPodCount, s.least)
		if s.most != 0 {
			bounded = min(bounded, s.most)
		}
		fmt.Printf("{\"desired\":%d,\"bounded\":%d,\"excess\":%d}\n", decision.DesiredPodCount, bounded, decision.ExcessBurstCapacity)
		if s.followsItself {
			s.replicas.ready = int(bounded)
		}
	}
	s.seconds++
	s.now = s.now.Add(time.Second)
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	var present *scenario
	for lines.Scan() {
		var next line
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return err
		}
		if next.ContainerConcurrency != nil {
			started, err := begin(next)
			if err != nil {
				return err
			}
			present = started
			continue
		}
		if present == nil {
			return fmt.Errorf("the first line has no containerConcurrency: %s", lines.Text())
		}
		present.pass(next)
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
