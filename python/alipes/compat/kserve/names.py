"""Which module names of the KServe SDK are answered to, and with what: those of release 0.21.

`alipes.compat.rows` says how a row is written. A home without a name behind its colon is the module itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from alipes.compat.kserve.messages import MESSAGES
from alipes.compat.rows import Absent, Row, homes, without

__all__ = ["MODULES", "ROOTS"]

_HERE: Final = "compat.kserve"
_CLUSTER: Final = (
    "objects of Kubernetes are written, sent and followed by `alipes deploy kserve`, or by the package kubernetes"
)
_LANGUAGE: Final = "endpoints for language models are not offered"
_INSIDE: Final = "it was a part of the server there; the server is alipes' own here"

_KINDS: Final = [
    "ApiClient",
    "ApiException",
    "ApiKeyError",
    "ApiTypeError",
    "ApiValueError",
    "Configuration",
    "KServeClient",
    "KnativeAddressable",
    "KnativeCondition",
    "KnativeURL",
    "KnativeVolatileTime",
    "NetUrlUserinfo",
    "OpenApiException",
    "V1alpha1BuiltInAdapter",
    "V1alpha1ClusterServingRuntime",
    "V1alpha1ClusterServingRuntimeList",
    "V1alpha1Container",
    "V1alpha1InferenceGraph",
    "V1alpha1InferenceGraphList",
    "V1alpha1InferenceGraphSpec",
    "V1alpha1InferenceGraphStatus",
    "V1alpha1InferenceRouter",
    "V1alpha1InferenceStep",
    "V1alpha1InferenceTarget",
    "V1alpha1LLMInferenceService",
    "V1alpha1LLMInferenceServiceConfig",
    "V1alpha1LLMInferenceServiceConfigList",
    "V1alpha1LLMInferenceServiceList",
    "V1alpha1ModelSpec",
    "V1alpha1ServingRuntime",
    "V1alpha1ServingRuntimeList",
    "V1alpha1ServingRuntimePodSpec",
    "V1alpha1ServingRuntimeSpec",
    "V1alpha1StorageHelper",
    "V1alpha1SupportedModelFormat",
    "V1alpha1TrainedModel",
    "V1alpha1TrainedModelList",
    "V1alpha1TrainedModelSpec",
    "V1beta1ARTExplainerSpec",
    "V1beta1AuthenticationRef",
    "V1beta1AutoScalingSpec",
    "V1beta1Batcher",
    "V1beta1CanarySpec",
    "V1beta1CanaryStatus",
    "V1beta1ComponentExtensionSpec",
    "V1beta1ComponentStatusSpec",
    "V1beta1CustomExplainer",
    "V1beta1CustomPredictor",
    "V1beta1CustomTransformer",
    "V1beta1DeployConfig",
    "V1beta1ExplainerConfig",
    "V1beta1ExplainerExtensionSpec",
    "V1beta1ExplainerSpec",
    "V1beta1ExplainersConfig",
    "V1beta1ExtMetricAuthentication",
    "V1beta1ExternalMetricSource",
    "V1beta1ExternalMetrics",
    "V1beta1InferenceService",
    "V1beta1InferenceServiceList",
    "V1beta1InferenceServiceSpec",
    "V1beta1InferenceServiceStatus",
    "V1beta1InferenceServicesConfig",
    "V1beta1IngressConfig",
    "V1beta1LightGBMSpec",
    "V1beta1LoggerSpec",
    "V1beta1MetricTarget",
    "V1beta1MetricsSpec",
    "V1beta1ModelFormat",
    "V1beta1ModelSpec",
    "V1beta1ONNXRuntimeSpec",
    "V1beta1PMMLSpec",
    "V1beta1PaddleServerSpec",
    "V1beta1PodMetricSource",
    "V1beta1PodMetrics",
    "V1beta1PodSpec",
    "V1beta1PredictorConfig",
    "V1beta1PredictorExtensionSpec",
    "V1beta1PredictorProtocols",
    "V1beta1PredictorSpec",
    "V1beta1PredictorsConfig",
    "V1beta1ResourceMetricSource",
    "V1beta1SKLearnSpec",
    "V1beta1StorageSpec",
    "V1beta1TFServingSpec",
    "V1beta1TorchServeSpec",
    "V1beta1TransformerConfig",
    "V1beta1TransformerSpec",
    "V1beta1TransformersConfig",
    "V1beta1TritonSpec",
    "V1beta1XGBoostSpec",
]

_TENSORS: Final = {
    **homes(f"{_HERE}.infer_request", "InferRequest"),
    **homes(f"{_HERE}.infer_response", "InferResponse"),
    **homes(f"{_HERE}.tensors", "InferInput", "InferOutput"),
}
_CLIENTS: Final = {
    **homes(f"{_HERE}.rest_client", "InferenceRESTClient", "RESTConfig"),
    **homes(f"{_HERE}.grpc_client", "InferenceGRPCClient"),
}
_MODEL: Final = homes(
    f"{_HERE}.model",
    "BaseKServeModel",
    "InferenceModel",
    "InferenceVerb",
    "Model",
    "PredictorProtocol",
    "append_forwardable_headers",
    "get_latency_ms",
    "is_v2",
)
_REPOSITORY: Final = homes(f"{_HERE}.model_repository", "MODEL_MOUNT_DIRS", "ModelRepository")
_PREDICTOR: Final = homes(f"{_HERE}.predictor_config", "PredictorConfig")
_CONSTANTS: Final = homes(
    f"{_HERE}.constants",
    *[
        "AZ_DEFAULT_CREDS_FILE",
        "DEFAULT_GRPC_PORT",
        "DEFAULT_HTTPS_PORT",
        "DEFAULT_HTTP_PORT",
        "DEFAULT_SA_NAME",
        "DEFAULT_SECRET_NAME",
        "EXPLAINER_BASE_URL_FORMAT",
        "FASTAPI_APP_IMPORT_STRING",
        "GCS_CREDS_FILE_DEFAULT_NAME",
        "GCS_DEFAULT_CREDS_FILE",
        "GENERATION",
        "GRPC_CONTENT_DATATYPE_MAPPINGS",
        "INFERENCESERVICE_CONFIG_MAP_NAME",
        "INFERENCESERVICE_SYSTEM_NAMESPACE",
        "INFERENCE_CONTENT_LENGTH_HEADER",
        "KSERVE_GROUP",
        "KSERVE_KIND_INFERENCEGRAPH",
        "KSERVE_KIND_INFERENCESERVICE",
        "KSERVE_KIND_LOCALMODELCACHE",
        "KSERVE_KIND_LOCALMODELNAMESPACECACHE",
        "KSERVE_KIND_LOCALMODELNODE",
        "KSERVE_KIND_LOCALMODELNODEGROUP",
        "KSERVE_KIND_TRAINEDMODEL",
        "KSERVE_LOGLEVEL",
        "KSERVE_MODEL_SERVER_NAME",
        "KSERVE_PLURAL_INFERENCEGRAPH",
        "KSERVE_PLURAL_INFERENCESERVICE",
        "KSERVE_PLURAL_LOCALMODELCACHE",
        "KSERVE_PLURAL_LOCALMODELNAMESPACECACHE",
        "KSERVE_PLURAL_LOCALMODELNODE",
        "KSERVE_PLURAL_LOCALMODELNODEGROUP",
        "KSERVE_PLURAL_TRAINEDMODEL",
        "KSERVE_TLS_CERT_FILE_ENV",
        "KSERVE_TLS_KEY_FILE_ENV",
        "KSERVE_V1ALPHA1",
        "KSERVE_V1ALPHA1_VERSION",
        "KSERVE_V1ALPHA2",
        "KSERVE_V1ALPHA2_VERSION",
        "KSERVE_V1BETA1",
        "KSERVE_V1BETA1_VERSION",
        "LLM_STATS_KEY",
        "MAX_GRPC_MESSAGE_LENGTH",
        "ModelType",
        "OBSERVED_GENERATION",
        "PredictorProtocol",
        "S3_ACCESS_KEY_ID_DEFAULT_NAME",
        "S3_DEFAULT_CREDS_FILE",
        "S3_SECRET_ACCESS_KEY_DEFAULT_NAME",
        "V1_ROUTE_PREFIX",
        "V2_ROUTE_PREFIX",
    ],
)
_ERRORS: Final = homes(
    f"{_HERE}.errors",
    "InferenceError",
    "InvalidInput",
    "ModelMissingError",
    "ModelNotFound",
    "ModelNotReady",
    "NoModelReady",
    "ServerNotLive",
    "ServerNotReady",
    "UnsupportedProtocol",
    "WorkersShouldBeLessThanMaxWorkersError",
)

_MODULES: Final[dict[str, Row]] = {
    "": {
        **homes(f"{_HERE}.model", "Model"),
        **homes(f"{_HERE}.model_server", "ModelServer"),
        **homes(f"{_HERE}.model_repository", "ModelRepository"),
        **_PREDICTOR,
        **_CLIENTS,
        **_TENSORS,
        "__version__": f"alipes.{_HERE}.release:VERSION",
        # These two are the modules below the packages of their names, as in the SDK.
        "constants": "kserve.constants.constants:",
        "utils": "kserve.utils.utils:",
        "context": "kserve.context:",
        "errors": "kserve.errors:",
        "inference_client": "kserve.inference_client:",
        "logging": "kserve.logging:",
        "model": "kserve.model:",
        "model_repository": "kserve.model_repository:",
        "model_server": "kserve.model_server:",
        "predictor_config": "kserve.predictor_config:",
        "protocol": "kserve.protocol:",
        **without(_CLUSTER, *_KINDS),
    },
    ".api": {},
    ".api.kserve_client": Absent(("KServeClient",), _CLUSTER),
    ".api_client": Absent(("ApiClient",), _CLUSTER),
    ".configuration": Absent(("Configuration",), _CLUSTER),
    ".constants": {"constants": "kserve.constants.constants:"},
    ".constants.constants": _CONSTANTS,
    ".context": homes(f"{_HERE}.context", "get_predictor_config", "set_predictor_config"),
    ".errors": _ERRORS,
    ".exceptions": Absent(
        ("ApiException", "ApiKeyError", "ApiTypeError", "ApiValueError", "OpenApiException"), _CLUSTER
    ),
    ".inference_client": {**_CLIENTS, **homes(f"{_HERE}.rest_client", "USE_CLIENT_DEFAULT")},
    ".logging": homes(
        f"{_HERE}.logging",
        "KSERVE_LOGGER_DATE_FORMAT",
        "KSERVE_LOGGER_FORMAT",
        "KSERVE_LOGGER_NAME",
        "KSERVE_LOG_CONFIG",
        "KSERVE_TRACE_LOGGER_FORMAT",
        "KSERVE_TRACE_LOGGER_NAME",
        "configure_logging",
        "logger",
        "trace_logger",
    ),
    ".metrics": Absent(
        ("EXPLAIN_HIST_TIME", "POST_HIST_TIME", "PREDICT_HIST_TIME", "PRE_HIST_TIME", "LLMStats", "get_labels"),
        "the server has metrics of its own: see the reference of metrics",
    ),
    ".model": {**_MODEL, **_PREDICTOR, **_CLIENTS, **homes(f"{_HERE}.infer_request", "InferRequest")},
    ".model_repository": _REPOSITORY,
    ".model_server": {**homes(f"{_HERE}.model_server", "ModelServer", "args", "parser"), **without(_INSIDE, "app")},
    ".models": Absent(("V1beta1InferenceService",), _CLUSTER),
    ".predictor_config": _PREDICTOR,
    ".protocol": {"infer_type": "kserve.protocol.infer_type:"},
    ".protocol.dataplane": Absent(("DataPlane",), _INSIDE),
    ".protocol.grpc": {"grpc_predict_v2_pb2": "kserve.protocol.grpc.grpc_predict_v2_pb2:"},
    ".protocol.grpc.grpc_predict_v2_pb2": homes(f"{_HERE}.messages", *MESSAGES),
    ".protocol.infer_type": {
        **_TENSORS,
        **homes(f"{_HERE}.tensors", "RequestedOutput", "get_content"),
        **homes(f"{_HERE}.tensor_bytes", "deserialize_bytes_tensor", "serialize_byte_tensor"),
        **homes(f"{_HERE}.parameters", "to_grpc_parameters", "to_http_parameters"),
        **homes(f"{_HERE}.errors", "InferenceError", "InvalidInput"),
    },
    ".protocol.model_repository_extension": Absent(("ModelRepositoryExtension",), _INSIDE),
    ".protocol.rest": {},
    ".protocol.rest.openai": Absent(
        ("OpenAIChatAdapterModel", "OpenAIEncoderModel", "OpenAIGenerativeModel"), _LANGUAGE
    ),
    ".protocol.rest.v2_datamodels": homes(
        f"{_HERE}.documents", "InferenceRequest", "InferenceResponse", "RequestInput", "RequestOutput", "ResponseOutput"
    ),
    ".utils": {"utils": "kserve.utils.utils:", "numpy_codec": "kserve.utils.numpy_codec:"},
    ".utils.inference_client_factory": homes(f"{_HERE}.client_factory", "InferenceClientFactory"),
    ".utils.numpy_codec": homes(f"{_HERE}.numpy_codec", "from_np_dtype", "to_np_dtype"),
    ".utils.utils": homes(
        f"{_HERE}.utils",
        "cpu_count",
        "create_response_cloudevent",
        "generate_uuid",
        "get_current_k8s_namespace",
        "get_default_target_namespace",
        "get_ig_namespace",
        "get_isvc_namespace",
        "get_predict_input",
        "get_predict_response",
        "is_running_in_k8s",
        "is_structured_cloudevent",
        "is_v1",
        "is_v2",
        "strtobool",
        "to_headers",
    ),
}

_FORMER_MODEL: Final = homes(f"{_HERE}.kfserving", "KFModel")
_FORMER: Final[dict[str, Row]] = {
    "": {
        **homes(f"{_HERE}.kfserving", "KFModel", "KFModelRepository", "KFServer"),
        "kfmodel": "kfserving.kfmodel:",
        "kfserver": "kfserving.kfserver:",
        **without(_CLUSTER, "KFServingClient"),
    },
    ".kfmodel": _FORMER_MODEL,
    ".kfmodel_repository": homes(f"{_HERE}.kfserving", "KFModelRepository"),
    ".kfserver": {
        **homes(f"{_HERE}.kfserving", "KFServer"),
        **homes(f"{_HERE}.model_server", "args", "parser"),
    },
}

ROOTS: Final = frozenset({"kserve", "kfserving"})
"""The packages that are answered for, unless they are installed."""

MODULES: Final[Mapping[str, Row]] = MappingProxyType(
    {f"kserve{name}": row for name, row in _MODULES.items()}
    | {f"kfserving{name}": row for name, row in _FORMER.items()}
)
"""Module name -> its row."""
