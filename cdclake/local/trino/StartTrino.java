import io.trino.server.Server;

/** Entry point of a Trino 406 without its module trino-server-main, which Maven Central lacks. */
public class StartTrino {
  public static void main(String[] arguments) {
    new Server().start(arguments[0]);
  }
}
