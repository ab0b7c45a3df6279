package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.kafka.connect.errors.DataException;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.core.exception.SdkClientException;

/** Tests the failures of both registries' clients, as these build them. */
class RegistryFailuresTest {
    private static final String VERSION = "0b1c7c1e-6d1d-4e0e-8a55-6a2f0a1d3c11";

    /** Has the name of what AWS's converter throws for everything. */
    private static final class AWSSchemaRegistryException extends RuntimeException {
        private static final long serialVersionUID = 1;

        AWSSchemaRegistryException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** Has the accessor that Apicurio's description of an error has. */
    public record Described(Integer errorCode) {
        public Integer getErrorCode() {
            return errorCode;
        }
    }

    /** Has the name of what Apicurio's client throws, without the cause. */
    public static class RestClientException extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final transient Described error;

        RestClientException(Integer status) {
            super("refused");
            error = new Described(status);
        }

        public Described getError() {
            return error;
        }
    }

    /** Has the name of one of Apicurio's answers. */
    public static final class BadRequestException extends RestClientException {
        private static final long serialVersionUID = 1;

        BadRequestException() {
            super(400);
        }
    }

    /** Has the name of Apicurio's answer to too many requests. */
    private static final class RateLimitedClientException extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    private static Throwable ofApicurio(Throwable failure) {
        return new RuntimeException("Failed to update cache value for key: {\"FAILURE\"}", failure);
    }

    private static Throwable ofGlue(String topic, String message, Throwable cause) {
        return new DataException(
                "Converting Kafka Connect data to byte[] failed due to serialization error:",
                new AWSSchemaRegistryException(
                        "Register schema :: Call failed when registering the schema with the schema"
                                + " registry for schema name = "
                                + topic,
                        new AWSSchemaRegistryException(message, cause)));
    }

    @Test
    void apicurioWithoutAnAnswerIsPassing() {
        for (Throwable failure :
                List.of(
                        new RestClientException(null),
                        new RestClientException(500),
                        new RestClientException(503),
                        new RateLimitedClientException())) {
            assertTrue(RegistryFailures.isPassing(ofApicurio(failure)), failure.toString());
        }
    }

    @Test
    void apicuriosOtherAnswersAreNotPassing() {
        for (Throwable failure : List.of(new RestClientException(404), new BadRequestException())) {
            assertFalse(RegistryFailures.isPassing(ofApicurio(failure)), failure.toString());
            assertNull(RegistryFailures.refusal(ofApicurio(failure)));
        }
    }

    @Test
    void aVersionThatFailedGluesCheckIsRefused() {
        for (String message :
                List.of(
                        "Schema evolution check failed. schemaVersionId "
                                + VERSION
                                + " is in FAILURE status.",
                        "Schema Found but status is FAILURE",
                        "Schema Found but status is DELETING")) {
            assertEquals(message, RegistryFailures.refusal(ofGlue("shop.public.t", message, null)));
        }
    }

    @Test
    void namesAndDefaultsInMessagesRefuseNothing() {
        Throwable away = SdkClientException.create("Unable to execute HTTP request");
        Throwable failure =
                ofGlue(
                        "shop.public.DELETING",
                        "Exception occurred while fetching or registering schema definition ="
                                + " {\"name\":\"state\",\"default\":\"FAILURE\"}, schema name = t ",
                        away);
        assertNull(RegistryFailures.refusal(failure));
        assertTrue(RegistryFailures.isPassing(failure));
    }

    @Test
    void aCheckThatGlueHasNotFinishedIsPassing() {
        for (String message :
                List.of(
                        "Retries exhausted for schema evolution check for schemaVersionId = " + VERSION,
                        "Schema Found but status is PENDING")) {
            Throwable failure = ofGlue("shop.public.t", message, null);
            assertNull(RegistryFailures.refusal(failure));
            assertTrue(RegistryFailures.isPassing(failure));
        }
    }
}
