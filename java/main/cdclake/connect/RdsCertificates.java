package cdclake.connect;

import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.postgresql.ssl.WrappedFactory;

/**
 * Socket factory for connections to PostgreSQL that trusts only the authorities of Amazon RDS.
 *
 * <p>The driver uses it as its {@code sslfactory}. With {@code sslmode=verify-full} the driver checks
 * the host name itself. MSK Connect has no place for a file that {@code sslrootcert} could name.
 */
public final class RdsCertificates extends WrappedFactory {
    static final String BUNDLE = "rds-ca.pem";

    /** Called by the driver. */
    public RdsCertificates() throws GeneralSecurityException, IOException {
        try (InputStream bundle = RdsCertificates.class.getResourceAsStream(BUNDLE)) {
            factory = trusting(bundle).getSocketFactory();
        }
    }

    static SSLContext trusting(InputStream certificates) throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(certificates)) {
            trusted.setCertificateEntry("ca-" + trusted.size(), each);
        }
        TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }
}
