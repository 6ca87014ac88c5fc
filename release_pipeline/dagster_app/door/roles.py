"""What each role may ask of Dagster: allow-lists, so that what a later version of Dagster adds is refused until somebody decides.

`tests/unit/dagster_app/test_judge.py` looks whether every field that Dagster has at the top is named here, on one side or
the other.
"""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """What somebody may do."""

    VIEW = "view"
    OPERATE = "operate"


def _names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())


QUERIES = _names(
    "allTopLevelResourceDetailsOrError appManagedComponentsForLocationOrError assetBackfillPreview assetCheckExecutions",
    "assetConditionEvaluationForPartition assetConditionEvaluationRecordsOrError assetConditionEvaluationsForEvaluationId",
    "assetNodeAdditionalRequiredKeys assetNodeDefinitionCollisions assetNodeOrError assetNodes assetOrError assetRecordsOrError",
    "assetsLatestInfo assetsOrError autoMaterializeAssetEvaluationsOrError autoMaterializeEvaluationsForEvaluationId",
    "autoMaterializeTicks canBulkTerminate capturedLogs capturedLogsMetadata componentTypesForLocationOrError",
    "componentsForLocationOrError executionPlanOrError graphOrError instance instigationStateOrError instigationStatesOrError",
    "isPipelineConfigValid latestDefsStateInfo locationStatusesOrError logsForRun partitionBackfillOrError",
    "partitionBackfillsOrError",
    "partitionSetOrError partitionSetsOrError permissions pipelineOrError pipelineRunOrError pipelineRunsOrError",
    "pipelineSnapshotOrError repositoriesOrError repositoryOrError resourcesOrError runConfigSchemaOrError runGroupOrError",
    "runIdsOrError runOrError runTagKeysOrError runTagsOrError runsFeedCountOrError runsFeedOrError runsOrError scheduleOrError",
    "scheduler schedulesOrError sensorOrError sensorsOrError shouldShowNux topLevelResourceDetailsOrError",
    "truePartitionsForAutomationConditionEvaluationNode utilizedEnvVarsOrError version workspaceLocationEntryOrError",
    "workspaceOrError __typename",
)
SUBSCRIPTIONS = frozenset({"pipelineRunLogs", "capturedLogs", "locationStateChangeEvents", "__typename"})
MUTATIONS = _names(  # of `operate`: what the flow judges again, or what can be undone in the UI
    "launchPipelineExecution launchRun launchMultipleRuns launchPipelineReexecution launchRunReexecution",
    "launchPartitionBackfill resumePartitionBackfill reexecutePartitionBackfill cancelPartitionBackfill",
    "terminatePipelineExecution terminateRun terminateRuns",
    "startSchedule stopRunningSchedule resetSchedule scheduleDryRun startSensor stopSensor resetSensor sensorDryRun",
    "addDynamicPartition reloadRepositoryLocation reloadWorkspace __typename",
)
NOBODY = _names(
    "deletePipelineRun deleteRun wipeAssets deleteDynamicPartitions reportRunlessAssetEvents reportAssetCheckEvaluations",
    "shutdownRepositoryLocation setSensorCursor setAutoMaterializePaused setConcurrencyLimit deleteConcurrencyLimit",
    "freeConcurrencySlotsForRun freeConcurrencySlots setAppManagedComponent deleteAppManagedComponent refreshComponentState",
    "logTelemetry setNuxSeen test",
)
COUNTS = _names(
    "limit upperLimit lowerLimit characterLimit dayRange dayOffset"
)  # arguments that say how much is looked up or made
PLACES = _names("startIdx endIdx cursor tickTimestamp startTimestamp beforeTimestamp afterTimestamp timestamp")  # and where
SPAN = ("cursor", "until")  # of ticks to come: made one by one, from a moment or now until another
HIDDEN = {("Instance", "info")}  # dagster.yaml as it stands, a password that somebody wrote into it included
EVALUATED = ("DryRunInstigationTick", "evaluationResult")  # a field of queries that runs the tick, and a tick opens releases
TAGS = _names(  # what runs may be tagged with: other launchers take a container's settings, and `watch` a process, from tags
    "dagster/partition dagster/partition_set dagster/asset_partition_range_start dagster/asset_partition_range_end",
    "dagster/backfill dagster/from_ui dagster/step_selection dagster/solid_selection dagster/is_resume_retry",
    "dagster/parent_run_id dagster/root_run_id dagster/run_metrics .dagster/repository",
)
