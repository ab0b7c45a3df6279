package cdclake.connect;

import java.io.IOException;
import java.util.Set;
import java.util.regex.Pattern;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.exception.SdkServiceException;

/**
 * Tells a registry that refuses a schema from one that does not answer.
 *
 * <p>The classes of the registries' clients are known by name: this project does not compile against
 * them.
 */
final class RegistryFailures {
    private static final Set<String> REFUSALS =
            Set.of(
                    "InvalidInputException",
                    "ResourceNumberLimitExceededException",
                    "RuleViolationException",
                    "UnprocessableSchemaException");

    private static final String GLUE = "AWSSchemaRegistryException";

    /**
     * Whole messages of AWS's converter for a version that did not pass Glue's check, or is deleted.
     *
     * <p>Its other messages contain topics and schemas, which may have any text.
     */
    private static final Pattern FAILED_CHECK =
            Pattern.compile(
                    "Schema evolution check failed\\. schemaVersionId \\S+ is in (FAILURE|DELETING)"
                            + " status\\.|Schema Found but status is (FAILURE|DELETING)");

    /** Whole messages of AWS's converter for a version that Glue has not checked yet. */
    private static final Pattern UNFINISHED_CHECK =
            Pattern.compile(
                    "Retries exhausted for schema evolution check for schemaVersionId = \\S+"
                            + "|Schema Found but status is PENDING");

    private static final int SERVER_ERROR = 500;

    private RegistryFailures() {}

    /** Returns the registry's reason to refuse the schema; null if it did not refuse it. */
    static String refusal(Throwable failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (isOfGlue(each, FAILED_CHECK) || REFUSALS.contains(name(each))) {
                return String.valueOf(each.getMessage());
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
            if (isOfGlue(each, UNFINISHED_CHECK) || isOfApicurio(each)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isOfGlue(Throwable failure, Pattern message) {
        return name(failure).equals(GLUE)
                && message.matcher(String.valueOf(failure.getMessage())).matches();
    }

    /**
     * Returns whether Apicurio's client had no answer, or one that it may ask for again.
     *
     * <p>It drops the cause. Its answers to a wrong request are subclasses, or have their status.
     */
    private static boolean isOfApicurio(Throwable failure) {
        if (name(failure).equals("RateLimitedClientException")) {
            return true;
        }
        if (!name(failure).equals("RestClientException")) {
            return false;
        }
        try {
            Object error = failure.getClass().getMethod("getError").invoke(failure);
            Object status = error.getClass().getMethod("getErrorCode").invoke(error);
            return status == null || (Integer) status >= SERVER_ERROR;
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException("this version of Apicurio's client fails otherwise", changed);
        }
    }

    private static String name(Throwable failure) {
        return failure.getClass().getSimpleName();
    }
}
