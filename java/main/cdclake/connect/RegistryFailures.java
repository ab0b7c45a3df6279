package cdclake.connect;

import java.io.IOException;
import java.util.Set;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.exception.SdkServiceException;

/** Tells a registry that refuses a schema from one that does not answer. */
final class RegistryFailures {
    /** Classes of the registries' clients, which this project does not compile against. */
    private static final Set<String> REFUSALS =
            Set.of(
                    "InvalidInputException",
                    "ResourceNumberLimitExceededException",
                    "RuleViolationException",
                    "UnprocessableSchemaException");

    private static final Set<String> FAILED_CHECKS = Set.of("FAILURE", "DELETING");
    private static final int SERVER_ERROR = 500;

    private RegistryFailures() {}

    /** Returns the registry's reason to refuse the schema; null if it did not refuse it. */
    static String refusal(Throwable failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            String message = String.valueOf(each.getMessage());
            boolean isFailedCheck =
                    each.getClass().getSimpleName().equals("AWSSchemaRegistryException")
                            && FAILED_CHECKS.stream().anyMatch(message::contains);
            if (isFailedCheck || REFUSALS.contains(each.getClass().getSimpleName())) {
                return message;
            }
        }
        return null;
    }

    /** Returns whether a later try may succeed. */
    static boolean isPassing(Throwable failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (each instanceof IOException || each instanceof SdkClientException) {
                return true;
            }
            if (each instanceof SdkServiceException service
                    && (service.statusCode() >= SERVER_ERROR || service.isThrottlingException())) {
                return true;
            }
        }
        return false;
    }
}
