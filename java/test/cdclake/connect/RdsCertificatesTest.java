package cdclake.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that connections trust the authorities in the bundle, and none of Java's defaults. */
final class RdsCertificatesTest {
    private static final char[] NO_SECRET = "changeit".toCharArray();

    @TempDir Path folder;

    @Test
    void theBundleHoldsAuthoritiesOfRdsThatAreValidForLong() throws Exception {
        Instant inTwoYears = Instant.now().plus(730, ChronoUnit.DAYS);
        Collection<? extends Certificate> all;
        try (InputStream bundle = RdsCertificates.class.getResourceAsStream(RdsCertificates.BUNDLE)) {
            all = CertificateFactory.getInstance("X.509").generateCertificates(bundle);
        }
        assertTrue(all.size() >= 81, "only " + all.size());
        for (Certificate each : all) {
            X509Certificate authority = (X509Certificate) each;
            String name = authority.getSubjectX500Principal().getName();
            assertTrue(name.contains("CN=Amazon RDS "), name);
            assertTrue(authority.getNotAfter().toInstant().isAfter(inTwoYears), name);
            assertTrue(authority.getBasicConstraints() >= 0, name);
            authority.verify(authority.getPublicKey());
        }
    }

    @Test
    void aServerIsTrustedByItsAuthorityOnly() throws Exception {
        KeyStore server = selfSigned();
        byte[] authority = server.getCertificate("server").getEncoded();
        SSLContext own = RdsCertificates.trusting(new ByteArrayInputStream(authority));
        assertEquals("TLSv1.3", shaken(server, own.getSocketFactory()));
        assertThrows(SSLHandshakeException.class, () -> shaken(server, new RdsCertificates()));
    }

    private static String shaken(KeyStore identity, SSLSocketFactory client) throws Exception {
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(identity, NO_SECRET);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        InetAddress here = InetAddress.getLoopbackAddress();
        try (SSLServerSocket listening =
                (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 1, here)) {
            CompletableFuture<Void> served = CompletableFuture.runAsync(() -> serve(listening));
            try (SSLSocket socket = (SSLSocket) client.createSocket(here, listening.getLocalPort())) {
                socket.startHandshake();
                return socket.getSession().getProtocol();
            } finally {
                served.join();
            }
        }
    }

    private static void serve(SSLServerSocket listening) {
        try (SSLSocket socket = (SSLSocket) listening.accept()) {
            socket.startHandshake();
        } catch (IOException refusedByTheClient) {
            // The client's exception is asserted.
        }
    }

    private KeyStore selfSigned() throws Exception {
        Path store = folder.resolve("server.p12");
        String[] command = {
            System.getProperty("java.home") + "/bin/keytool", "-genkeypair", "-alias", "server", "-keyalg", "EC",
            "-dname", "CN=localhost", "-storetype", "PKCS12", "-keystore", store.toString(),
            "-storepass", new String(NO_SECRET), "-validity", "2"
        };
        assertEquals(0, new ProcessBuilder(command).inheritIO().start().waitFor());
        KeyStore loaded = KeyStore.getInstance("PKCS12");
        try (InputStream stored = Files.newInputStream(store)) {
            loaded.load(stored, NO_SECRET);
        }
        return loaded;
    }
}
