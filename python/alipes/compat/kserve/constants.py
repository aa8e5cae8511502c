"""Constants of the KServe SDK: names of Kubernetes objects, ports, environment variables, fields of messages."""

from __future__ import annotations

import os
from enum import Enum
from typing import Final

KSERVE_GROUP: Final = "serving.kserve.io"
KSERVE_KIND_INFERENCESERVICE: Final = "InferenceService"
KSERVE_PLURAL_INFERENCESERVICE: Final = "inferenceservices"
KSERVE_KIND_TRAINEDMODEL: Final = "TrainedModel"
KSERVE_PLURAL_TRAINEDMODEL: Final = "trainedmodels"
KSERVE_KIND_INFERENCEGRAPH: Final = "InferenceGraph"
KSERVE_PLURAL_INFERENCEGRAPH: Final = "inferencegraphs"
KSERVE_KIND_LOCALMODELNODEGROUP: Final = "LocalModelNodeGroup"
KSERVE_PLURAL_LOCALMODELNODEGROUP: Final = "localmodelnodegroups"
KSERVE_KIND_LOCALMODELCACHE: Final = "LocalModelCache"
KSERVE_PLURAL_LOCALMODELCACHE: Final = "localmodelcaches"
KSERVE_KIND_LOCALMODELNODE: Final = "LocalModelNode"
KSERVE_PLURAL_LOCALMODELNODE: Final = "localmodelnodes"
KSERVE_KIND_LOCALMODELNAMESPACECACHE: Final = "LocalModelNamespaceCache"
KSERVE_PLURAL_LOCALMODELNAMESPACECACHE: Final = "localmodelnamespacecaches"
KSERVE_V1BETA1_VERSION: Final = "v1beta1"
KSERVE_V1ALPHA1_VERSION: Final = "v1alpha1"
KSERVE_V1ALPHA2_VERSION: Final = "v1alpha2"
KSERVE_V1BETA1: Final = f"{KSERVE_GROUP}/{KSERVE_V1BETA1_VERSION}"
KSERVE_V1ALPHA1: Final = f"{KSERVE_GROUP}/{KSERVE_V1ALPHA1_VERSION}"
KSERVE_V1ALPHA2: Final = f"{KSERVE_GROUP}/{KSERVE_V1ALPHA2_VERSION}"

KSERVE_LOGLEVEL: Final = os.environ.get("KSERVE_LOGLEVEL", "INFO").upper()

INFERENCESERVICE_CONFIG_MAP_NAME: Final = "inferenceservice-config"
INFERENCESERVICE_SYSTEM_NAMESPACE: Final = "kserve"
DEFAULT_SECRET_NAME: Final = "kserve-secret-"
DEFAULT_SA_NAME: Final = "kserve-service-credentials"

S3_ACCESS_KEY_ID_DEFAULT_NAME: Final = "AWS_ACCESS_KEY_ID"
S3_SECRET_ACCESS_KEY_DEFAULT_NAME: Final = "AWS_SECRET_ACCESS_KEY"
S3_DEFAULT_CREDS_FILE: Final = "~/.aws/credentials"
GCS_CREDS_FILE_DEFAULT_NAME: Final = "gcloud-application-credentials.json"
GCS_DEFAULT_CREDS_FILE: Final = "~/.config/gcloud/application_default_credentials.json"
AZ_DEFAULT_CREDS_FILE: Final = "~/.azure/azure_credentials.json"

KSERVE_MODEL_SERVER_NAME: Final = "kserve"
GRPC_CONTENT_DATATYPE_MAPPINGS: Final = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""The field of a message's tensor that holds the elements of a datatype. Source: the V2 protocol."""

OBSERVED_GENERATION: Final = "observedGeneration"
GENERATION: Final = "generation"
EXPLAINER_BASE_URL_FORMAT: Final = "{0}://{1}"
LLM_STATS_KEY: Final = "llm-stats"

MAX_GRPC_MESSAGE_LENGTH: Final = 8 << 20
V2_ROUTE_PREFIX: Final = "/v2"
V1_ROUTE_PREFIX: Final = "/v1"
DEFAULT_HTTP_PORT: Final = 8080
DEFAULT_HTTPS_PORT: Final = 8443
DEFAULT_GRPC_PORT: Final = 8081
KSERVE_TLS_CERT_FILE_ENV: Final = "KSERVE_TLS_CERT_FILE"
KSERVE_TLS_KEY_FILE_ENV: Final = "KSERVE_TLS_KEY_FILE"
INFERENCE_CONTENT_LENGTH_HEADER: Final = "inference-header-content-length"
FASTAPI_APP_IMPORT_STRING: Final = "kserve.model_server:app"


class PredictorProtocol(Enum):
    """How a transformer or explainer asks its predictor."""

    REST_V1 = "v1"
    REST_V2 = "v2"
    GRPC_V2 = "grpc-v2"


class ModelType(Enum):
    """What a model is in an InferenceService."""

    EXPLAINER = 1
    PREDICTOR = 2
