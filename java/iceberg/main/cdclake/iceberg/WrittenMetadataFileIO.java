package cdclake.iceberg;

import org.apache.iceberg.aws.s3.S3FileIO;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Reads a table's metadata files from memory if this process has written them.
 *
 * <p>A commit of Iceberg reads the manifest list and the table metadata that it has just written, and the next commit
 * reads the manifest list again: five of thirteen requests. These files never change and their names are never used
 * again, so a copy cannot be out of date.
 */
public class WrittenMetadataFileIO extends S3FileIO {
    private static final long serialVersionUID = 1L;
    private static final WrittenFiles WRITTEN = new WrittenFiles();

    /** Iceberg creates it by name. */
    public WrittenMetadataFileIO() {}

    @Override
    public InputFile newInputFile(String path) {
        byte[] content = WRITTEN.get(path);
        return content == null ? super.newInputFile(path) : new InMemoryInputFile(path, content);
    }

    @Override
    public InputFile newInputFile(String path, long length) {
        byte[] content = WRITTEN.get(path);
        return content == null ? super.newInputFile(path, length) : new InMemoryInputFile(path, content);
    }

    @Override
    public OutputFile newOutputFile(String path) {
        OutputFile file = super.newOutputFile(path);
        return path.contains("/metadata/") ? new CopiedOutputFile(file, WRITTEN) : file;
    }

    @Override
    public void deleteFile(String path) {
        WRITTEN.remove(path);
        super.deleteFile(path);
    }
}
