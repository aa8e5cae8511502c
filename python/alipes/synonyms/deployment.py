"""The rows of `alipes deploy`: what Docker, Compose, kubectl and the clouds call it."""

from __future__ import annotations

from typing import Final

from alipes.synonyms.synonym import Synonym

__all__ = ["APPLY", "BY_DESCRIPTION", "DEPLOY", "IMAGE", "SYSTEMD"]

DEPLOY: Final = (
    Synonym("docker build container containerize oci podman", meant="alipes deploy image"),
    Synonym("dockerfile", meant="alipes deploy image --dockerfile"),
    Synonym("push publish", meant="alipes deploy image --push"),
    Synonym("k8s kubectl kube manifest manifests yaml", meant="alipes deploy kubernetes"),
    Synonym("docker-compose", meant="alipes deploy compose"),
    Synonym("service unit systemctl", meant="alipes deploy systemd"),
    Synonym("chart charts", meant="alipes deploy helm"),
    Synonym("up start run create install", meant="alipes deploy apply"),
    Synonym("down delete destroy uninstall stop", meant="alipes deploy remove"),
    Synonym("list ls ps get", meant="alipes deploy status"),
    Synonym("undo revert", meant="alipes deploy rollback"),
    Synonym("grafana prometheus alerts", meant="alipes deploy dashboards"),
    Synonym("proxy gateway load-balancer", meant="alipes deploy envoy"),
    Synonym("gke gcp google", says="a script makes clusters of Google Cloud: alipes.cloud.google"),
    Synonym(
        "aws ecs fargate lambda sagemaker azure aca fly fly-io heroku render railway modal cloudrun cloud-run vertex "
        "vertexai registry",
        says="alipes deploy image --push HOST/NAME:TAG puts an image into a registry, from which such services take it",
    ),
    Synonym("bento torchserve triton", meant="alipes deploy image"),
)

IMAGE: Final = (
    Synonym("tag t image image-name n", meant="--name"),
    Synonym("save out", meant="--output"),
    Synonym("file f", meant="--dockerfile"),
    Synonym("registry", meant="--push"),
    Synonym("packages pip requirements r requirement dependency dependencies", meant="--package"),
    Synonym("extras e", meant="--extra"),
    Synonym(
        "platform platforms arch architecture",
        says="an image is of the kind of machine that writes it; for another, build what --dockerfile writes",
    ),
    Synonym("base base-image from", says="it has no base image; --dockerfile writes a FROM that can be changed"),
    Synonym(
        "models model repository model-repository app m",
        says="name the folder or the app by itself: alipes deploy image FOLDER",
    ),
    Synonym("gpu gpus cuda", says="--package onnxruntime-gpu brings the libraries for GPUs"),
    Synonym("env environment", says="variables belong to the container: docker run -e NAME=VALUE"),
    Synonym("port p", says="ports belong to the container: docker run -p 8000:8000"),
)

BY_DESCRIPTION: Final = (
    Synonym("port p http-port", says="--set ports.http=9000 names the port of HTTP"),
    Synonym("grpc-port", says="--set ports.grpc=9001 names the port of gRPC"),
    Synonym("tag t i", meant="--image"),
    Synonym("file values-file config c", meant="--values"),
    Synonym("replica scale instances", meant="--replicas"),
    Synonym("namespace n ns context", says="kubectl -n NAMESPACE apply -f - puts what is written into a namespace"),
    Synonym("gpu gpus", says="--set resources.gpus=1 asks for a GPU"),
    Synonym("cpu cpus cores", says="--set resources.cpu=2 asks for cores"),
    Synonym("memory mem", says="--set resources.memory=4Gi asks for memory"),
    Synonym("env environment e", says="--set environment.NAME=VALUE sets a variable"),
    Synonym("args arguments flags command", says="--set 'arguments=[\"-v\"]' adds flags of alipes serve"),
    Synonym(
        "autoscale autoscaling scaling hpa keda min-replicas max-replicas autoscaler",
        says="alipes deploy kubernetes --set scaling.kind=hpa --set scaling.most=10 adds servers by load, alipes "
        "deploy kserve from zero on",
    ),
    Synonym(
        "ingress host domain loadbalancer load-balancer expose service service-type",
        says="alipes deploy kubernetes --set service.type=LoadBalancer gives an address outside the cluster; alipes "
        "deploy kserve has routes",
    ),
    Synonym("api-key key", says="--set key.secret=NAME names the secret that holds the key"),
    Synonym("tls ssl https cert", says="--set tls.secret=NAME names the secret that holds tls.crt and tls.key"),
    Synonym("out write save to", meant="--output"),
    Synonym(
        "models model repository model-repository app m",
        says="name the models by themselves, as the first argument",
    ),
)

SYSTEMD: Final = (
    Synonym(
        "user u group",
        says="the unit has a user of its own, DynamicUser=yes: write User=NAME in the place of that line",
    ),
    Synonym(
        "install enable start now",
        says="install it by hand: --output FILE writes it, sudo cp FILE /etc/systemd/system/ and sudo systemctl "
        "enable --now NAME start it",
    ),
    Synonym(
        "working-directory workdir working-dir cwd chdir directory d",
        says="the unit needs none: name the models or the app by its whole path; write WorkingDirectory= into the "
        "unit where the app reads files beside it",
    ),
    Synonym("restart", says="the unit has Restart=on-failure; change that line for another policy"),
    Synonym("name n", says="the name of the file names the service: --output NAME.service"),
)

APPLY: Final = (
    Synonym("f file filename k", says="name the files by themselves: alipes deploy apply FILE, or - for what is piped"),
)
