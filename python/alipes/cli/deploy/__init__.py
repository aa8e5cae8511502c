"""`alipes deploy`: what brings a server to other machines, one module for each command; listed at the foot."""

from __future__ import annotations

from typing import Final

import typer

from alipes.cli.deploy.cluster import APPLY_HELP, apply, logs, rollback, scale, status
from alipes.cli.deploy.dashboards import HELP as DASHBOARDS_HELP
from alipes.cli.deploy.dashboards import dashboards
from alipes.cli.deploy.envoy import HELP as ENVOY_HELP
from alipes.cli.deploy.envoy import envoy
from alipes.cli.deploy.image import HELP as IMAGE_HELP
from alipes.cli.deploy.image import image
from alipes.cli.deploy.kserve import kserve_app
from alipes.cli.deploy.kserve_rollout import rollout as kserve_rollout
from alipes.cli.deploy.kubernetes import HELM_HELP, helm, kubernetes
from alipes.cli.deploy.kubernetes import HELP as KUBERNETES_HELP
from alipes.cli.deploy.machine import COMPOSE_HELP, SYSTEMD_HELP, compose, systemd
from alipes.cli.deploy.removal import REMOVE_HELP, remove
from alipes.cli.deploy.simulate import SIMULATE_HELP, simulate

__all__ = ["deploy_app"]

deploy_app: Final = typer.Typer(help="Write what runs a server elsewhere: images, manifests, units.")

deploy_app.command("image", help=IMAGE_HELP, short_help="Write a container image, without a container engine.")(image)
deploy_app.command(help=KUBERNETES_HELP, short_help="Write what runs servers on Kubernetes.")(kubernetes)
deploy_app.command(help=HELM_HELP, short_help="Write a Helm chart.")(helm)
kserve_app.command("rollout", short_help="Raise a canary's share by steps, with a verdict.")(kserve_rollout)
deploy_app.add_typer(kserve_app, name="kserve")
deploy_app.command(help=COMPOSE_HELP, short_help="Write a file for Docker Compose.")(compose)
deploy_app.command(help=SYSTEMD_HELP, short_help="Write a unit of systemd.")(systemd)
deploy_app.command("envoy", help=ENVOY_HELP, short_help="Write what gives several servers one address.")(envoy)
deploy_app.command(help=APPLY_HELP, short_help="Send objects to a cluster.")(apply)
deploy_app.command(short_help="Show a deployment of a cluster, as it changes.")(status)
deploy_app.command(short_help="Print what its servers write.")(logs)
deploy_app.command(short_help="Have more servers, or fewer.")(scale)
deploy_app.command(short_help="Run a former revision again.")(rollback)
deploy_app.command(help=REMOVE_HELP, short_help="Remove everything that belongs to it.")(remove)
deploy_app.command(help=DASHBOARDS_HELP, short_help="Write a dashboard and alerts.")(dashboards)
deploy_app.command(help=SIMULATE_HELP, short_help="Replay a recorded day against scalers.")(simulate)
